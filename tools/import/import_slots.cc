// The slots of an ImportWorker: records, answers, and the end of directories.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/import/import_records.h"
#include "tools/import/import_worker.h"

namespace siltfs {

using transfer::Answer;
using transfer::EntryRecord;
using transfer::Request;
using transfer::RequestType;

namespace {

constexpr size_t kCallSlot = 2;  // of requests that are answered at once

}  // namespace

Status ImportWorker::AddRecord(const EntryRecord& record, Sent sent) {
  const std::string encoded = transfer::EncodeRecord(record);
  if (encoded.size() > transfer::kSlotBytes) {
    return {StatusCode::kUnsupported, "its extended attributes are too large to be imported"};
  }
  SILTFS_RETURN_IF_ERROR(MakeRoom(encoded.size()));
  std::memcpy(lane_.slot(filling_.slot).data() + filling_.used, encoded.data(), encoded.size());
  filling_.used += encoded.size();
  filling_.sent.push_back(std::move(sent));
  return Status::Ok();
}

Status ImportWorker::MakeRoom(size_t bytes) {
  while (filling_.used + bytes > transfer::kSlotBytes) SILTFS_RETURN_IF_ERROR(Flush());
  return Status::Ok();
}

Status ImportWorker::Flush() {
  if (filling_.sent.empty()) return Status::Ok();
  // The other slot must be free before it is filled.
  while (!posted_.empty()) SILTFS_RETURN_IF_ERROR(TakeAnswer());
  if (filling_.sent.empty()) return Status::Ok();  // TakeAnswer has flushed
  const uint8_t flags = job_.replaces_directories() ? transfer::kReplaceDirectories : 0;
  SILTFS_RETURN_IF_ERROR(lane_.Post({.type = RequestType::kPut,
                                     .flags = flags,
                                     .slot = static_cast<uint8_t>(filling_.slot),
                                     .bytes = static_cast<uint32_t>(filling_.used),
                                     .count = static_cast<uint32_t>(filling_.sent.size())}));
  Batch next;
  next.slot = 1 - filling_.slot;
  posted_.push_back(std::exchange(filling_, std::move(next)));
  return Status::Ok();
}

Status ImportWorker::TakeAnswer() {
  SILTFS_ASSIGN_OR_RETURN(const Answer answer, lane_.Await());
  Batch batch = std::move(posted_.front());
  posted_.pop_front();
  SILTFS_RETURN_IF_ERROR(transfer::StatusOfAnswer(answer));
  SILTFS_ASSIGN_OR_RETURN(
      const auto outcomes,
      transfer::DecodeOutcomes(lane_.slot(batch.slot).first(answer.bytes), batch.sent.size()));
  std::vector<DirectoryNodePtr> complete = std::move(batch.complete_after);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Sent& sent = batch.sent[i];
    Settle(sent.directory, sent.finishes ? std::string() : sent.name, sent.linked, outcomes[i]);
    if (sent.finishes && sent.directory->parent) complete.push_back(sent.directory->parent);
  }
  for (DirectoryNodePtr& node : complete) SILTFS_RETURN_IF_ERROR(Complete(std::move(node)));
  return Status::Ok();
}

Status ImportWorker::Drain() {
  // An answer may finish a directory, which adds a record.
  while (!filling_.sent.empty() || !posted_.empty()) {
    SILTFS_RETURN_IF_ERROR(Flush());
    while (!posted_.empty()) SILTFS_RETURN_IF_ERROR(TakeAnswer());
  }
  return Status::Ok();
}

Result<Answer> ImportWorker::Call(Request request, std::string_view payload) {
  while (!posted_.empty()) SILTFS_RETURN_IF_ERROR(TakeAnswer());
  if (payload.size() > transfer::kSlotBytes)
    return Status(StatusCode::kUnsupported, "its extended attributes are too large");
  std::copy(payload.begin(), payload.end(), lane_.slot(kCallSlot).begin());
  request.slot = kCallSlot;
  request.bytes = static_cast<uint32_t>(payload.size());
  SILTFS_RETURN_IF_ERROR(lane_.Post(request));
  return lane_.Await();
}

Status ImportWorker::Complete(DirectoryNodePtr node) {
  while (node && --node->pending == 0) {
    if (!node->finish || job_.options().dry_run) {
      node = node->parent;
      continue;
    }
    EntryRecord record = RecordOf(node->attributes, node->xattrs);
    record.kind = transfer::RecordKind::kFinishDirectory;
    record.number = node->target;
    const Status added = AddRecord(record, {.directory = node, .name = {}, .finishes = true});
    if (!added.Is(StatusCode::kUnsupported)) return added;
    job_.AddError(node->path, std::string(added.cause()));
    node = node->parent;
  }
  return Status::Ok();
}

Status ImportWorker::CompleteWhenAnswered(const DirectoryNodePtr& node) {
  if (!filling_.sent.empty()) {
    filling_.complete_after.push_back(node);
  } else if (!posted_.empty()) {
    posted_.back().complete_after.push_back(node);
  } else {
    return Complete(node);
  }
  return Status::Ok();
}

void ImportWorker::Settle(const DirectoryNodePtr& node, const std::string& name,
                          const std::optional<SourceAttributes>& linked,
                          const transfer::Outcome& outcome) {
  if (linked) job_.Resolve(*linked, outcome.code == StatusCode::kOk ? outcome.inode : 0);
  if (outcome.code != StatusCode::kOk) {
    job_.AddError(name.empty() ? node->path : PathIn(*node, name), outcome.cause);
  } else if (!name.empty()) {
    ++job_.totals().files;
    if (outcome.effect == PutEffect::kUnchanged) ++job_.totals().files_unchanged;
  }
}

void ImportWorker::Fail(const DirectoryNode& node, const std::string& name, const Status& status) {
  node.incomplete = true;
  job_.AddError(PathIn(node, name), std::string(status.cause()));
}

}  // namespace siltfs
