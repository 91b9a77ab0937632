#include "fs/replication/snapshot_sender.h"

#include <algorithm>
#include <utility>

#include "fs/mark/name_filter.h"
#include "fs/mark/node_set.h"
#include "fs/recipe/recipe_difference.h"
#include "fs/records/directory_entry.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/quota_record.h"
#include "fs/records/schema.h"
#include "fs/versions/version_key.h"
#include "store/base/checksum.h"

namespace siltfs {
namespace {

constexpr size_t kBatchBytes = 2u << 20;
constexpr uint64_t kStepsBetweenChecks = 256;
// The most files for which something is remembered. Each takes some 50 bytes.
constexpr size_t kMostRemembered = 1u << 18;

bool IsInodeKey(std::string_view key) { return IsKeyOf(Table::kInode, key); }

uint64_t InodeOf(std::string_view key) {
  uint64_t inode = 0;
  IsVersionedKey(key, inode);
  return inode;
}

Result<Recipe> RecipeOf(const std::optional<std::string>& value) {
  if (!value) return Recipe{};
  SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*value));
  return std::move(record.recipe);
}

// The record with its new value as a patch of `base`, if this is shorter. Often only times differ.
StreamRecord PatchOf(const RecordChange& change, const std::string& base_key,
                     const std::string& base) {
  constexpr size_t kLeastSaving = 32;
  const std::string& after = *change.after;
  const size_t most = std::min(base.size(), after.size());
  size_t prefix = 0;
  while (prefix < most && base[prefix] == after[prefix]) ++prefix;
  size_t suffix = 0;
  while (suffix < most - prefix &&
         base[base.size() - 1 - suffix] == after[after.size() - 1 - suffix])
    ++suffix;
  StreamRecord record;
  record.key = change.key;
  record.value = after;
  if (prefix + suffix < kLeastSaving) return record;
  record.value = after.substr(prefix, after.size() - prefix - suffix);
  record.patched = base_key;
  record.prefix = static_cast<uint32_t>(prefix);
  record.suffix = static_cast<uint32_t>(suffix);
  return record;
}

}  // namespace

SnapshotSender::SnapshotSender(ChunkStore& chunks, ChunkNamer& namer, Options options,
                               ByteSink& out, ByteSource* answers)
    : nodes_(chunks),
      options_(std::move(options)),
      changes_(options_.states),
      writer_(out),
      sender_(chunks, namer, writer_),
      position_(options_.begin.position),
      named_(changes_.after(), hidden_),
      named_before_(changes_.before(), hidden_) {
  if (answers != nullptr) {
    answers_.emplace(*answers);
    sender_.Ask(*answers_);
  }
}

Status SnapshotSender::Step() {
  return ++steps_ % kStepsBetweenChecks == 0 && options_.check ? options_.check() : Status::Ok();
}

Result<SendOutcome> SnapshotSender::Send() {
  if (options_.states.lineage == kLiveLineage) {
    SILTFS_ASSIGN_OR_RETURN(hidden_, ReadHiddenRanges(*options_.states.metadata));
  }
  SILTFS_RETURN_IF_ERROR(writer_.Write(options_.begin));
  if (answers_) {
    SILTFS_RETURN_IF_ERROR(AwaitReady(true));
  } else if (options_.states.older) {
    SILTFS_RETURN_IF_ERROR(FindChunksOfBase());
  }
  SILTFS_RETURN_IF_ERROR(SendChanges());
  SILTFS_RETURN_IF_ERROR(writer_.Write(StreamEnd{.records = records_, .chunks = sender_.chunks()}));
  if (answers_) SILTFS_RETURN_IF_ERROR(AwaitReady(false));
  return SendOutcome{
      .records = records_, .chunks = sender_.chunks(), .plain_bytes = sender_.plain_bytes()};
}

Status SnapshotSender::AwaitReady(bool at_beginning) {
  SILTFS_ASSIGN_OR_RETURN(const StreamMessage answer, answers_->Read());
  if (const auto* refusal = std::get_if<StreamRefusal>(&answer))
    return {StatusCode::kAborted, "the receiver refuses the snapshot: " + refusal->why};
  const auto* ready = std::get_if<StreamReady>(&answer);
  if (ready == nullptr) return {StatusCode::kCorruption, "the receiver's answer is malformed"};
  if (at_beginning) position_ = ready->position;
  return Status::Ok();
}

Status SnapshotSender::FindChunksOfBase() {
  NameFilter filter;
  const NewReferences add = {.node = [&](const RecipeChild& node, uint8_t) -> Result<bool> {
                               SILTFS_RETURN_IF_ERROR(Step());
                               filter.Add(node.name);
                               return true;
                             },
                             .chunk =
                                 [&](const RecipeEntry& chunk) {
                                   filter.Add(chunk.name);
                                   return Step();
                                 }};
  Status collected =
      changes_.ForEach(position_, [&](RecordChange& change, std::string_view) -> Result<bool> {
        SILTFS_RETURN_IF_ERROR(Step());
        SILTFS_ASSIGN_OR_RETURN(const bool needed, Prepare(change));
        if (needed) SILTFS_RETURN_IF_ERROR(ForEachReference(change, add));
        if (needed) SILTFS_RETURN_IF_ERROR(NoteRecipe(change));
        return true;
      });
  SILTFS_RETURN_IF_ERROR(collected);
  if (filter.empty()) return Status::Ok();
  return ForEachReferenceOfBase([&](const ChunkName& name) {
    if (filter.MayContain(name)) sender_.Skip(name);
    return Step();
  });
}

Status SnapshotSender::ForEachReferenceOfBase(
    const std::function<Status(const ChunkName&)>& visit) {
  NodeSet walked(NodeSet::kWholeNames);
  const NewReferences references = {
      .node = [&](const RecipeChild& node, uint8_t) -> Result<bool> {
        if (!walked.Insert(node.name)) return false;
        SILTFS_RETURN_IF_ERROR(visit(node.name));
        return true;
      },
      .chunk = [&](const RecipeEntry& chunk) { return visit(chunk.name); }};
  NamedInodes named(changes_.before(), hidden_);
  for (const Table table : {Table::kInode, Table::kOverlay}) {
    const KeyRange range = RangeOf(table);
    const auto records = changes_.before().NewIteratorBelow(range.end);
    for (records->Seek(range.begin); records->Valid(); records->Next()) {
      uint64_t inode = 0;
      if (!IsVersionedKey(records->key(), inode)) continue;
      SILTFS_ASSIGN_OR_RETURN(const bool has_name, named.Contains(inode));
      if (!has_name) continue;
      SILTFS_RETURN_IF_ERROR(Step());
      if (table == Table::kInode) SILTFS_RETURN_IF_ERROR(FindRecipe(inode, records->value()));
      SILTFS_RETURN_IF_ERROR(VisitReferences(records->key(), records->value(), {}, references));
    }
    SILTFS_RETURN_IF_ERROR(records->status());
  }
  return Status::Ok();
}

Status SnapshotSender::SendChanges() {
  Status sent =
      changes_.ForEach(position_, [&](RecordChange& change, std::string_view next) -> Result<bool> {
        SILTFS_RETURN_IF_ERROR(Step());
        SILTFS_ASSIGN_OR_RETURN(const bool needed, Prepare(change));
        if (needed) SILTFS_RETURN_IF_ERROR(SendChange(change));
        position_ = next;
        if (batch_bytes_ >= kBatchBytes) SILTFS_RETURN_IF_ERROR(SendBatch(next));
        return true;
      });
  SILTFS_RETURN_IF_ERROR(sent);
  return batch_.records.empty() ? Status::Ok() : SendBatch(position_);
}

Status SnapshotSender::SendChange(const RecordChange& change) {
  const NewReferences send = {
      .node = [this](const RecipeChild& node, uint8_t) -> Result<bool> {
        SILTFS_RETURN_IF_ERROR(Step());
        return sender_.AddNode(node);
      },
      .chunk = [this](const RecipeEntry& chunk) -> Status {
        SILTFS_RETURN_IF_ERROR(Step());
        return sender_.Add({chunk.name, static_cast<uint32_t>(chunk.length), false});
      }};
  SILTFS_RETURN_IF_ERROR(ForEachReference(change, send));
  StreamRecord record;
  record.key = change.key;
  record.value = change.after;
  if (IsInodeKey(change.key) && change.after) {
    std::string base_key;
    SILTFS_ASSIGN_OR_RETURN(const auto base, Predecessor(change, base_key));
    if (base) record = PatchOf(change, base_key, *base);
  }
  batch_bytes_ += change.key.size() + (change.after ? change.after->size() : 0) + 8;
  batch_.records.push_back(std::move(record));
  if (IsInodeKey(change.key) && change.before && !change.after)
    return SendGone(InodeOf(change.key));
  if (!IsInodeKey(change.key) || !change.before || !change.after) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const InodeRecord before, InodeRecord::Decode(*change.before));
  uint64_t inode = 0;
  if (before.links > 0 || !IsVersionedKey(change.key, inode)) return Status::Ok();
  return SendWhole(inode);
}

Status SnapshotSender::NoteRecipe(const RecordChange& change) {
  if (!IsInodeKey(change.key) || change.before || !change.after ||
      same_recipe_.size() >= kMostRemembered)
    return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(change.after));
  if (recipe.size() > 0) same_recipe_.emplace(Checksum(recipe.Encode()), 0);
  return Status::Ok();
}

Status SnapshotSender::FindRecipe(uint64_t inode, std::string_view value) {
  if (same_recipe_.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
  if (record.recipe.size() == 0) return Status::Ok();
  const auto same = same_recipe_.find(Checksum(record.recipe.Encode()));
  if (same != same_recipe_.end() && same->second == 0) same->second = inode;
  return Status::Ok();
}

void SnapshotSender::NoteReplaced(const RecordChange& change) {
  if (!IsKeyOf(Table::kDirectoryEntry, change.key) || !change.before || !change.after ||
      replaced_.size() >= kMostRemembered)
    return;
  const auto before = NameEntry::Decode(*change.before);
  const auto after = NameEntry::Decode(*change.after);
  if (before.ok() && after.ok() && before->inode != after->inode)
    replaced_.emplace(after->inode, before->inode);
}

Result<std::optional<std::string>> SnapshotSender::Predecessor(const RecordChange& change,
                                                               std::string& key) {
  std::optional<std::string> value = change.before;
  key = change.key;
  uint64_t inode = 0;
  if (!value && IsVersionedKey(change.key, inode)) {
    uint64_t found = 0;
    if (!same_recipe_.empty() && change.after) {
      SILTFS_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(change.after));
      const auto same = same_recipe_.find(Checksum(recipe.Encode()));
      if (same != same_recipe_.end()) found = same->second;
    }
    const auto replaced = replaced_.find(inode);
    if (found == 0 && replaced != replaced_.end()) found = replaced->second;
    if (found == 0) return value;
    key = InodeKey(found);
    SILTFS_ASSIGN_OR_RETURN(value, changes_.before().Get(key));
    if (value) RemoveQuotaNumber(*value);
  }
  if (!value) return value;
  // The receiver has no record of a file without a name.
  SILTFS_ASSIGN_OR_RETURN(const bool has_name, named_before_.Contains(InodeOf(key)));
  if (!has_name) value.reset();
  return value;
}

Status SnapshotSender::SendGone(uint64_t inode) {
  SILTFS_ASSIGN_OR_RETURN(const auto kept, changes_.after().Get(InodeKey(inode)));
  if (!kept) return Status::Ok();  // the removals are changes of their own
  return ForEachOther(changes_.before(), inode, [this](const KvIterator& record) {
    return SendChange({.key = record.key(), .before = std::string(record.value())});
  });
}

Status SnapshotSender::SendWhole(uint64_t inode) {
  return ForEachOther(changes_.after(), inode, [this](const KvIterator& record) {
    return SendChange({.key = record.key(), .after = std::string(record.value())});
  });
}

Status SnapshotSender::ForEachOther(const KvSnapshot& state, uint64_t inode,
                                    const std::function<Status(const KvIterator&)>& send) {
  for (const Table table : {Table::kOverlay, Table::kXattr}) {
    const KeyRange range = RangeOf(table, inode);
    const auto records = state.NewIteratorBelow(range.end);
    for (records->Seek(range.begin); records->Valid(); records->Next()) {
      SILTFS_RETURN_IF_ERROR(send(*records));
      // A transfer that goes on here sends the file again.
      if (batch_bytes_ >= kBatchBytes) SILTFS_RETURN_IF_ERROR(SendBatch(position_));
    }
    SILTFS_RETURN_IF_ERROR(records->status());
  }
  return Status::Ok();
}

Status SnapshotSender::SendBatch(std::string_view next) {
  SILTFS_RETURN_IF_ERROR(sender_.Flush());
  records_ += batch_.records.size();
  batch_bytes_ = 0;
  batch_.position = next;
  return writer_.Write(std::exchange(batch_, {}));
}

Status NamedInodes::Learn(uint64_t inode, std::string_view value) {
  SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(value));
  inode_ = inode;
  contained_ = record.links > 0 && std::ranges::none_of(hidden_, [&](const HiddenRange& range) {
                 return range.Contains(inode);
               });
  return Status::Ok();
}

Result<bool> NamedInodes::Contains(uint64_t inode) {
  if (inode == inode_) return contained_;
  SILTFS_ASSIGN_OR_RETURN(const auto value, state_.Get(InodeKey(inode)));
  if (value) {
    SILTFS_RETURN_IF_ERROR(Learn(inode, *value));
  } else {
    inode_ = inode;
    contained_ = false;
  }
  return contained_;
}

Result<bool> SnapshotSender::Prepare(RecordChange& change) {
  uint64_t inode = 0;
  if (!IsVersionedKey(change.key, inode))
    return Status(StatusCode::kCorruption, "the key of a record is malformed");
  if (IsKeyOf(Table::kDirectoryCookie, change.key) || IsKeyOf(Table::kQuota, change.key))
    return false;
  // The receiver has no such quotas.
  if (IsInodeKey(change.key)) {
    if (change.before) RemoveQuotaNumber(*change.before);
    if (change.after) RemoveQuotaNumber(*change.after);
  }
  NoteReplaced(change);
  if (!change.after) return true;
  if (IsInodeKey(change.key)) SILTFS_RETURN_IF_ERROR(named_.Learn(inode, *change.after));
  SILTFS_ASSIGN_OR_RETURN(const bool sent, named_.Contains(inode));
  if (sent) return true;
  change.after.reset();
  return change.before.has_value();
}

Status SnapshotSender::ForEachReference(const RecordChange& change, const NewReferences& visit) {
  if (!change.after) return Status::Ok();
  Recipe before;
  if (IsInodeKey(change.key)) {
    std::string key;
    SILTFS_ASSIGN_OR_RETURN(const auto base, Predecessor(change, key));
    SILTFS_ASSIGN_OR_RETURN(before, RecipeOf(base));
  }
  return VisitReferences(change.key, *change.after, before, visit);
}

Status SnapshotSender::VisitReferences(std::string_view key, std::string_view value,
                                       const Recipe& before, const NewReferences& visit) {
  if (IsInodeKey(key)) {
    SILTFS_ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(std::string(value)));
    return ForEachNewReference(nodes_, before, recipe, visit);
  }
  if (!IsKeyOf(Table::kOverlay, key)) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const OverlayExtent extent, OverlayExtent::Decode(value));
  for (const ChunkSlice& slice : extent.slices)
    SILTFS_RETURN_IF_ERROR(visit.chunk(RecipeEntry::Chunk(slice.name, slice.chunk_length)));
  return Status::Ok();
}

}  // namespace siltfs
