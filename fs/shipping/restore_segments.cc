#include "fs/shipping/restore_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/segments/segment_tables.h"
#include "fs/shipping/object_keys.h"
#include "fs/shipping/segment_tails.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_object.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {

Status SegmentRestore::ListTails() {
  return ForEachObject(objects_, TailPrefix(state_.data_epoch), [this](const ObjectInfo& info) {
    if (const auto name = ParseTailKey(info.key)) tails_[name->segment].push_back(name->offset);
    return Status::Ok();
  });
}

Status SegmentRestore::ListObjects() {
  return ForEachObject(objects_, std::string(kSegmentKeyPrefix), [this](const ObjectInfo& info) {
    const auto id = ParseSegmentObjectKey(info.key);
    const auto size = SegmentBytes(info.size);
    if (!id || !size) return Status::Ok();
    auto& contents = floors_.IsForeign(id->segment, id->epoch()) ? foreign_ : contents_;
    SegmentContent& newest = contents[id->segment];
    if (newest.id.generation <= id->generation) newest = {*id, *size};
    return Status::Ok();
  });
}

// The tails are listed first: a writer removes them when the bucket has the object.
Status SegmentRestore::Run(const KvSnapshot& metadata) {
  for (const std::string& directory :
       {FilesDirectory(options_.bucket_directory), RemovedDirectory(options_.bucket_directory)}) {
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env_, directory));
  }
  SILTFS_ASSIGN_OR_RETURN(floors_, ReadEpochFloors(metadata));
  SILTFS_RETURN_IF_ERROR(ListTails());
  SILTFS_RETURN_IF_ERROR(ListObjects());
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(metadata));
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords intents, ReadReplacements(metadata));
  for (const auto& [id, record] : intents) intended_[id] = record.length;
  for (const auto& [id, record] : records) SILTFS_RETURN_IF_ERROR(RestoreOne(id, record));
  return env_.SyncDirectory(RemovedDirectory(options_.bucket_directory));
}

Status SegmentRestore::RestoreOne(SegmentId id, const SegmentRecord& record) {
  const auto content = contents_.find(id);
  const bool has_object = content != contents_.end();
  if (record.sealed && has_object && HasSizeOf(content->second, record)) return Status::Ok();
  // The tails also have a sealed segment of which the last writer had not put the object yet.
  Status restored = tails_.contains(id)
                        ? FromTails(id, record.length)
                        : Status(StatusCode::kNotFound, "the bucket has no bytes of the segment");
  const bool lacking = restored.Is(StatusCode::kNotFound) || restored.Is(StatusCode::kCorruption);
  if (lacking && has_object && record.sealed) {
    restored = Status(StatusCode::kCorruption, fmt::format("its object has {} bytes instead of {}",
                                                           content->second.size, record.length));
  } else if (lacking && has_object && content->second.size >= record.length) {
    restored = FromObject(content->second, record.length);
  }
  if (restored.ok()) return Hide(id);
  if (!restored.Is(StatusCode::kNotFound) && !restored.Is(StatusCode::kCorruption)) return restored;
  // A part of a file would look like one that was cut off, and would hide the object.
  const Status removed = RemoveSegment(env_, options_.store, id);
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  // If another writer had put the very same content first, the store has no object of its own.
  const auto foreign = foreign_.find(id);
  const bool fits = foreign != foreign_.end() && HasSizeOf(foreign->second, record);
  if (!record.sealed || !fits) return Lost(id, restored);
  restored.IgnoreError("the object has the segment");
  return Status::Ok();
}

// A replacement may be there before or after the record that belongs to it, but not before its
// intent.
bool SegmentRestore::HasSizeOf(const SegmentContent& content, const SegmentRecord& record) const {
  const auto intent = intended_.find(content.id.segment);
  return content.size == record.length ||
         (intent != intended_.end() && content.size == intent->second);
}

Status SegmentRestore::Lost(SegmentId id, const Status& cause) {
  const std::string sentence =
      fmt::format("segment {} cannot be restored: {}", id, cause.ToString());
  if (!options_.restore.stop_at_damage)
    return Status(StatusCode::kCorruption, sentence).At(objects_.name());
  if (options_.restore.report) options_.restore.report(sentence);
  return Status::Ok();
}

Result<std::unique_ptr<File>> SegmentRestore::NewFile(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env_, options_.store, id));
  const std::string path = SegmentPath(options_.store, id);
  const Status removed = env_.RemoveFile(path);
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  return env_.OpenFile(path, {.mode = OpenMode::kCreate});
}

Status SegmentRestore::Finish(SegmentId id, File& file) {
  SILTFS_RETURN_IF_ERROR(file.Sync());
  return env_.SyncDirectory(SegmentDirectory(options_.store, id));
}

Status SegmentRestore::FromTails(SegmentId id, uint64_t length) {
  SILTFS_ASSIGN_OR_RETURN(const auto file, NewFile(id));
  uint64_t size = 0;
  for (const uint64_t offset : tails_[id]) {
    if (size >= length || offset > size) break;
    const TailName name{state_.data_epoch, id, offset};
    SILTFS_ASSIGN_OR_RETURN(const Bytes object,
                            objects_.Get(TailKey(name), kMostTailObject, nullptr));
    SILTFS_ASSIGN_OR_RETURN(const std::string bytes, DecodeTail(name, object));
    if (offset + bytes.size() <= size) continue;
    const uint64_t skip = size - offset;
    const uint64_t take = std::min<uint64_t>(bytes.size() - skip, length - size);
    SILTFS_RETURN_IF_ERROR(file->Write(size, AsBytes(bytes).subspan(skip, take)));
    size += take;
  }
  if (size < length) {
    return Status(StatusCode::kNotFound,
                  fmt::format("the bucket has {} of {} bytes of the segment", size, length));
  }
  return Finish(id, *file);
}

// Verifies each block, and writes what is wanted of it.
Status SegmentRestore::FromObject(const SegmentContent& content, uint64_t length) {
  const std::string key = SegmentObjectKey(content.id);
  const auto read = [&](uint64_t offset, Bytes& bytes) -> Status {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, objects_.Read(key, "", offset, bytes));
    if (got == bytes.size()) return Status::Ok();
    return Status(StatusCode::kCorruption, "the object is too short").At(key, offset);
  };
  Bytes trailer(TrailerBytes(content.size));
  SILTFS_RETURN_IF_ERROR(read(content.size, trailer));
  SILTFS_ASSIGN_OR_RETURN(const BlockChecksums sums, BlockChecksums::Decode(content, trailer));
  SILTFS_ASSIGN_OR_RETURN(const auto file, NewFile(content.id.segment));
  for (uint32_t block = 0; uint64_t{block} * kObjectBlockBytes < length; ++block) {
    const uint64_t offset = uint64_t{block} * kObjectBlockBytes;
    Bytes bytes(BlockBytes(content.size, block));
    SILTFS_RETURN_IF_ERROR(read(offset, bytes));
    if (!sums.Matches(block, bytes))
      return Status(StatusCode::kCorruption, "the object is damaged").At(key, offset);
    const uint64_t take = std::min<uint64_t>(bytes.size(), length - offset);
    SILTFS_RETURN_IF_ERROR(file->Write(offset, ByteView(bytes).first(take)));
  }
  return Finish(content.id.segment, *file);
}

// Covers all generations of the epochs so far. The next writer has a higher epoch.
Status SegmentRestore::Hide(SegmentId id) {
  const uint64_t last = (uint64_t{state_.end.epoch} + 1) << kEpochShift;
  const Tombstone tombstone{{id, last - 1}, state_.sequence + 1};
  return env_
      .OpenFile(TombstonePath(options_.bucket_directory, tombstone), {.mode = OpenMode::kCreate})
      .status();
}

}  // namespace siltfs
