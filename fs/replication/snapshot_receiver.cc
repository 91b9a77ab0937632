#include "fs/replication/snapshot_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "fs/meta/snapshot_counters.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/replication/received_check.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/record_form.h"
#include "fs/versions/snapshot_view.h"
#include "fs/versions/version_keeper.h"
#include "store/env/env.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// The disk must have room for this multiple of a batch: its log, its table, and merged tables.
constexpr uint64_t kRoomFactor = 4;
// Not that of the sizes of snapshots, which removes its directory when it ends.
constexpr const char* kSortDirectory = "sort-received";
// Of the records of a message, with their patches applied. Patches are short, and a stream may have
// many of them.
constexpr uint64_t kMostBatchBytes = 4 * kMaxStreamMessageBytes;
// A position is a key of metadata and some bytes. It is kept in the lineage's record.
constexpr size_t kMostPositionBytes = 4096;

Status Unexpected() {
  return {StatusCode::kCorruption, "the stream has a message that does not belong there"};
}

const NumberedSnapshot* FindSource(const std::vector<NumberedSnapshot>& all, const SnapshotId& id) {
  for (const NumberedSnapshot& snapshot : all) {
    if (!snapshot.record.removing && snapshot.record.lineage != kLiveLineage &&
        snapshot.record.source == id)
      return &snapshot;
  }
  return nullptr;
}

// Whether the record is none of an extended attribute, or one that a file system accepts.
bool IsPossibleXattr(const StreamRecord& record) {
  const auto name = ParseXattrName(record.key);
  if (!name) return true;
  return name->size() <= kMaxNameBytes && name->find('\0') == name->npos &&
         (!record.value || record.value->size() <= kMaxXattrValueBytes);
}

// Whether the record belongs to a quota, or to an inode that counts against one. Snapshots are sent
// without quotas.
bool HasQuota(const StreamRecord& record) {
  return IsKeyOf(Table::kQuota, record.key) ||
         (IsKeyOf(Table::kInode, record.key) && record.value &&
          InodeRecord::HasQuotaNumber(*record.value));
}

}  // namespace

SnapshotReceiver::SnapshotReceiver(const StoreContext& store, SnapshotTrees& trees,
                                   const ReceiveRequest& request, ByteSource& in,
                                   std::function<Status()> restore_heads,
                                   std::function<Status()> check)
    : store_(store),
      trees_(trees),
      request_(request),
      restore_heads_(std::move(restore_heads)),
      check_(std::move(check)),
      in_(in),
      reader_(in),
      chunks_(store.chunks()) {
  if (request.answers != nullptr) answers_.emplace(*request.answers);
}

Status SnapshotReceiver::Answer(const StreamMessage& message) {
  return answers_ ? answers_->Write(message) : Status::Ok();
}

Result<StreamMessage> SnapshotReceiver::Next() {
  if (check_) SILTFS_RETURN_IF_ERROR(check_());
  // A stream may stall between two batches, but not while it holds up garbage collection.
  in_.SetPatience(chunks_.InBatch() ? std::optional(request_.batch_patience) : std::nullopt);
  return reader_.Read();
}

Result<NumberedSnapshot> SnapshotReceiver::Receive() {
  auto received = ReceiveAll();
  chunks_.EndBatch();
  if (!received.ok())
    Answer(StreamRefusal{.why = std::string(received.status().cause())})
        .IgnoreError("the first failure is reported");
  return received;
}

Result<NumberedSnapshot> SnapshotReceiver::ReceiveAll() {
  SILTFS_RETURN_IF_ERROR(Begin());
  while (true) {
    SILTFS_ASSIGN_OR_RETURN(const StreamMessage message, Next());
    if (const auto* block = std::get_if<StreamBlock>(&message)) {
      SILTFS_RETURN_IF_ERROR(store_.WaitForSegmentRoom());
      SILTFS_RETURN_IF_ERROR(chunks_.Put(*block));
    } else if (const auto* records = std::get_if<StreamRecords>(&message)) {
      SILTFS_RETURN_IF_ERROR(Apply(*records));
    } else if (const auto* offer = std::get_if<StreamOffer>(&message)) {
      if (!answers_) return Unexpected();
      SILTFS_RETURN_IF_ERROR(Answer(chunks_.Choose(*offer)));
    } else if (const auto* end = std::get_if<StreamEnd>(&message)) {
      // A sender that waits for an answer keeps its stream open.
      if (!answers_) SILTFS_RETURN_IF_ERROR(reader_.ExpectEnd());
      SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot made, Publish(*end));
      SILTFS_RETURN_IF_ERROR(Answer(StreamReady{}));
      return made;
    } else {
      return Unexpected();
    }
  }
}

Status SnapshotReceiver::Begin() {
  SILTFS_ASSIGN_OR_RETURN(StreamMessage message, Next());
  auto* const begin = std::get_if<StreamBegin>(&message);
  if (begin == nullptr) return Unexpected();
  begin_ = std::move(*begin);
  if (begin_.two_way != answers_.has_value()) {
    return {StatusCode::kInvalidArgument,
            begin_.two_way ? "the sender waits for answers; receive with --two-way, too"
                           : "the sender takes no answers; receive without --two-way"};
  }
  name_ = request_.name.empty() ? begin_.name : request_.name;
  if (!IsName(name_) || begin_.name.empty()) {
    return {StatusCode::kInvalidArgument,
            "the name of the snapshot cannot be the name of a file; choose one with --name"};
  }
  if (begin_.inode_limit <= kRootInode || begin_.inode_limit > kInodesPerLineage)
    return {StatusCode::kCorruption, "the stream has an impossible limit of inodes"};
  const std::vector<NumberedSnapshot> all = snapshots().Snapshots();
  if (const NumberedSnapshot* const found = FindSource(all, begin_.snapshot)) {
    return {StatusCode::kAlreadyExists,
            fmt::format("the store has this snapshot already, as \"{}\"", found->record.name)};
  }
  const bool taken = std::ranges::any_of(all, [this](const NumberedSnapshot& snapshot) {
    return !snapshot.record.removing && snapshot.record.name == name_;
  });
  if (taken) {
    return {StatusCode::kAlreadyExists,
            fmt::format("another snapshot has the name \"{}\"; choose one with --name", name_)};
  }
  SILTFS_RETURN_IF_ERROR(ChooseLineage());
  return Answer(StreamReady{.position = record_.incoming->position});
}

Status SnapshotReceiver::ChooseLineage() {
  if (begin_.base) SILTFS_RETURN_IF_ERROR(HoldBase(*begin_.base));
  for (const auto& [lineage, record] : lineages().AllLineages()) {
    if (!record.incoming || record.incoming->id != begin_.snapshot ||
        record.incoming->base != begin_.base)
      continue;
    lineage_ = lineage;
    return GoOn(record);
  }
  if (!begin_.position.empty()) {
    return {StatusCode::kInvalidArgument,
            "the store has no unfinished transfer of this snapshot; send it without --resume"};
  }
  record_ = {.changed = true,
             .incoming = IncomingSnapshot{.id = begin_.snapshot,
                                          .base = begin_.base,
                                          .name = IsName(begin_.name) ? begin_.name : name_,
                                          .inode_limit = begin_.inode_limit,
                                          .position = {}}};
  if (!begin_.base) {
    SILTFS_ASSIGN_OR_RETURN(lineage_, lineages().AddLineage(record_));
    return Status::Ok();
  }
  const Lineages all = lineages().AllLineages();
  const auto found = all.find(lineage_);
  const bool changed = found != all.end() && found->second.changed;
  const auto existing = snapshots().Snapshots();
  // The limits of inodes must not fall, not even behind a snapshot that is being removed.
  const bool removing = std::ranges::any_of(existing, [this](const NumberedSnapshot& snapshot) {
    return snapshot.record.removing && snapshot.record.lineage == lineage_;
  });
  if (changed)
    SILTFS_RETURN_IF_ERROR(lineages().SetLineage(lineage_, LineageRecord{.changed = true}));
  if (changed || removing) SILTFS_RETURN_IF_ERROR(restore_heads_());
  return lineages().SetLineage(lineage_, record_);
}

Status SnapshotReceiver::HoldBase(const SnapshotId& id) {
  const std::vector<NumberedSnapshot> all = snapshots().Snapshots();
  const NumberedSnapshot* const found = FindSource(all, id);
  if (found == nullptr) {
    return {StatusCode::kAborted,
            "the store has not received the base of this snapshot; send the base first, or send "
            "the snapshot without --base"};
  }
  SILTFS_ASSIGN_OR_RETURN(SnapshotTrees::Hold hold, trees_.HoldSnapshot(found->number));
  const std::vector<SnapshotBounds> own = BoundsOf(all, found->record.lineage);
  if (own.back().number != found->number) {
    const auto newest = std::ranges::find(all, own.back().number, &NumberedSnapshot::number);
    return {StatusCode::kInvalidArgument,
            fmt::format("the base \"{}\" is not the newest snapshot that was received; send with "
                        "the base \"{}\"",
                        found->record.name, newest->record.name)};
  }
  if (begin_.inode_limit < found->record.inode_limit)
    return {StatusCode::kCorruption, "the stream has an impossible limit of inodes"};
  base_ = *found;
  base_hold_.emplace(std::move(hold));
  lineage_ = found->record.lineage;
  return Status::Ok();
}

Status SnapshotReceiver::GoOn(const LineageRecord& record) {
  record_ = record;
  if (record_.incoming->inode_limit != begin_.inode_limit)
    return {StatusCode::kCorruption, "the stream has another limit of inodes than before"};
  if (answers_) return Status::Ok();
  // A stream from the beginning writes all records again.
  if (begin_.position.empty()) {
    record_.incoming->position.clear();
    return lineages().SetLineage(lineage_, record_);
  }
  if (begin_.position == record_.incoming->position) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          "the stream goes on at another place than the unfinished transfer; print its token with "
          "`siltfs receive --token`"};
}

Result<std::optional<std::string>> SnapshotReceiver::BaseValue(const std::string& key) const {
  if (!base_ || !IsRecordKey(key)) return std::optional<std::string>();
  return MakeSnapshotView(store_.metadata().CommittedSnapshot(), BoundsOf(*base_))->Get(key);
}

Status SnapshotReceiver::ApplyPatch(StreamRecord& record, const std::string& base) {
  if (!record.value || uint64_t{record.prefix} + record.suffix > base.size())
    return {StatusCode::kCorruption, "the stream has a patch that does not fit its base"};
  record.value =
      base.substr(0, record.prefix) + *record.value + base.substr(base.size() - record.suffix);
  return Status::Ok();
}

Status SnapshotReceiver::VerifyReferences(const KvSnapshot& head, const StreamRecord& record,
                                          const std::optional<std::string>& base) {
  if (!record.value) return Status::Ok();
  switch (static_cast<Table>(record.key[0])) {
    case Table::kInode: {
      SILTFS_ASSIGN_OR_RETURN(const InodeRecord after, InodeRecord::Decode(*record.value));
      if (!after.IsRegular()) return Status::Ok();
      if (base) return chunks_.VerifyInode(base, after);
      SILTFS_ASSIGN_OR_RETURN(const auto before, head.Get(record.key));
      return chunks_.VerifyInode(before, after);
    }
    case Table::kOverlay:
      return chunks_.VerifyExtent(*record.value);
    default:
      return Status::Ok();
  }
}

Status SnapshotReceiver::AddCookies(const KvSnapshot& head, const StreamRecord& record,
                                    std::vector<Mutation>& removed,
                                    std::vector<Mutation>& added) const {
  uint64_t directory = 0;
  if (!IsKeyOf(Table::kDirectoryEntry, record.key) || !IsVersionedKey(record.key, directory))
    return Status::Ok();
  const std::string name = record.key.substr(InodeKey(0).size());
  SILTFS_ASSIGN_OR_RETURN(const auto old_value, head.Get(record.key));
  if (old_value) {
    SILTFS_ASSIGN_OR_RETURN(const NameEntry old, NameEntry::Decode(*old_value));
    std::string key = DirectoryCookieKey(directory, old.cookie);
    SILTFS_ASSIGN_OR_RETURN(const auto cookie, head.Get(key));
    const auto entry = cookie ? CookieEntry::Decode(*cookie)
                              : Result<CookieEntry>(Status(StatusCode::kNotFound, "none"));
    // A name of an earlier batch may have taken over the cookie.
    if (entry.ok() && entry->name == name) removed.push_back({std::move(key), std::nullopt});
  }
  if (!record.value) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const NameEntry now, NameEntry::Decode(*record.value));
  added.push_back(
      {DirectoryCookieKey(directory, now.cookie), CookieEntry{now.inode, now.type, name}.Encode()});
  return Status::Ok();
}

Status SnapshotReceiver::Apply(const StreamRecords& message) {
  if (message.position.size() > kMostPositionBytes)
    return {StatusCode::kCorruption, "the stream has an impossible position"};
  const auto head = MakeLineageView(store_.metadata().CommittedSnapshot(), lineage_);
  // All removals of cookies come before all additions, because names may exchange their cookies.
  std::vector<Mutation> changes;
  std::vector<Mutation> added;
  uint64_t bytes = 0;
  for (const StreamRecord& sent : message.records) {
    StreamRecord record = sent;
    std::optional<std::string> base;
    if (record.IsPatch()) {
      if (!IsKeyOf(Table::kInode, record.key) || !IsKeyOf(Table::kInode, record.patched))
        return {StatusCode::kCorruption, "the stream has a patch of another record than an inode"};
      SILTFS_ASSIGN_OR_RETURN(base, BaseValue(record.patched));
      SILTFS_RETURN_IF_ERROR(ApplyPatch(record, base.value_or(std::string())));
    }
    uint64_t inode = 0;
    const bool intact =
        record.value ? IsRecord(record.key, *record.value) : IsRecordKey(record.key);
    if (!intact || !IsPossibleXattr(record) || !IsVersionedKey(record.key, inode) ||
        inode >= begin_.inode_limit || IsKeyOf(Table::kDirectoryCookie, record.key) ||
        HasQuota(record))
      return {StatusCode::kCorruption, "the stream has a malformed record"};
    SILTFS_RETURN_IF_ERROR(VerifyReferences(*head, record, base));
    SILTFS_RETURN_IF_ERROR(AddCookies(*head, record, changes, added));
    bytes += record.key.size() + (record.value ? record.value->size() : 0);
    if (bytes > kMostBatchBytes)
      return {StatusCode::kCorruption, "the stream has too many records in one message"};
    added.push_back({std::move(record.key), std::move(record.value)});
  }
  std::ranges::move(added, std::back_inserter(changes));
  SILTFS_RETURN_IF_ERROR(chunks_.Finish());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kRoomFactor * bytes));
  // The chunks must be durable before the records that refer to them.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  record_.incoming->position = message.position;
  SILTFS_RETURN_IF_ERROR(lineages().WriteHead(lineage_, changes, record_));
  chunks_.EndBatch();
  records_ += message.records.size();
  return Status::Ok();
}

Result<NumberedSnapshot> SnapshotReceiver::Publish(const StreamEnd& end) {
  if (end.records != records_ || end.chunks != chunks_.chunks())
    return Status(StatusCode::kCorruption, "the stream lacks a part of the snapshot");
  ReceivedCheckOptions options;
  options.states.metadata = store_.metadata().CommittedSnapshot();
  options.states.lineage = lineage_;
  options.inode_limit = begin_.inode_limit;
  options.check = check_;
  if (base_) {
    options.states.older = BoundsOf(*base_);
    options.counters = CountersOf(base_->record);
  }
  options.sort_directory = JoinPath(store_.options().store, kSortDirectory);
  auto checked = CheckReceived(store_.env(), options);
  store_.env().RemoveDirectory(options.sort_directory).IgnoreError("it was not needed");
  if (!checked.ok()) {
    // The records that have arrived are wrong, so another transfer must not go on with them.
    if (checked.status().Is(StatusCode::kCorruption)) {
      lineages()
          .SetLineage(lineage_, LineageRecord{.changed = true})
          .IgnoreError("the failure of the check is reported");
      restore_heads_().IgnoreError("the next mount repeats it");
    }
    return std::move(checked).status();
  }
  // The snapshot is durable at once. So after a crash, the changes before it must be there, too. A
  // stream without records has made no commit so far.
  SILTFS_RETURN_IF_ERROR(store_.metadata().CommitNow());
  SnapshotRecord record;
  record.name = name_;
  record.created = begin_.snapshot.created;
  record.commit = store_.metadata().last_commit();
  record.inode_limit = begin_.inode_limit;
  SetCounters(*checked, record);
  record.lineage = lineage_;
  record.source = begin_.snapshot;
  SILTFS_ASSIGN_OR_RETURN(NumberedSnapshot added, lineages().AddReceived(std::move(record)));
  SILTFS_RETURN_IF_ERROR(store_.metadata().AwaitShipped());
  return added;
}

}  // namespace siltfs
