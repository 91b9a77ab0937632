#include "fs/segments/segment_cache.h"

#include <algorithm>

namespace siltfs {

SegmentCache::SegmentCache(SegmentStore& store, StoreUuid uuid, const BlockCodec& codec,
                           const SegmentLog* log, size_t open_files,
                           std::vector<SegmentId> recompressed)
    : store_(store),
      uuid_(uuid),
      codec_(codec),
      log_(log),
      readers_(open_files),
      recompressed_(std::move(recompressed)) {}

SegmentFile SegmentCache::FileOf(SegmentId segment) const {
  ReaderLock lock(files_mutex_);
  if (segment == replacing_) return SegmentFile::kUnknown;
  return std::binary_search(recompressed_.begin(), recompressed_.end(), segment)
             ? SegmentFile::kRecompressed
             : SegmentFile::kOriginal;
}

Status SegmentCache::Replace(SegmentId segment, const std::function<Status()>& install) {
  {
    WriterLock lock(files_mutex_);
    replacing_ = segment;
  }
  SILTFS_RETURN_IF_ERROR(install());
  SetRecompressed(segment);
  return Status::Ok();
}

void SegmentCache::SetRecompressed(SegmentId segment) {
  {
    WriterLock lock(files_mutex_);
    if (segment == replacing_) replacing_ = kNoSegment;
    const auto place = std::lower_bound(recompressed_.begin(), recompressed_.end(), segment);
    if (place == recompressed_.end() || *place != segment) recompressed_.insert(place, segment);
  }
  // Another thread may cache the old file again after this call. This does no harm: Open does not
  // use a cached file that belongs to another state of the segment.
  readers_.Erase(segment);
}

void SegmentCache::Remove(SegmentId segment) {
  // This must be the first step. Another thread in Open may cache a reader after the Erase below;
  // it then checks IsRemoved again and erases the reader itself.
  removed_->Add(segment);
  readers_.Erase(segment);
  for (const SegmentFile file : {SegmentFile::kOriginal, SegmentFile::kRecompressed})
    tables_.Erase(TableKey(segment, file));
  WriterLock lock(files_mutex_);
  const auto place = std::lower_bound(recompressed_.begin(), recompressed_.end(), segment);
  if (place != recompressed_.end() && *place == segment) recompressed_.erase(place);
}

// Before a replacement the file's name leads to the old file, afterwards to the new one. FileOf is
// called before and after the file is opened. Once a segment has left one of the states kOriginal
// and kRecompressed, it never returns to this state. So if both results are equal, the opened file
// belongs to that state.
Result<OpenSegmentPtr> SegmentCache::Open(SegmentId segment) {
  if (IsRemoved(segment)) return Status(StatusCode::kNotFound, "the segment was removed");
  const SegmentFile before = FileOf(segment);
  if (before != SegmentFile::kUnknown) {
    auto cached = readers_.Get(segment);
    if (cached && cached->file == before) return cached;
  }
  SILTFS_ASSIGN_OR_RETURN(auto reader, SegmentReader::Open(store_, {uuid_, segment}, codec_));
  auto opened = std::make_shared<OpenSegment>();
  opened->id = segment;
  opened->file = FileOf(segment) == before ? before : SegmentFile::kUnknown;
  opened->reader = std::move(reader);
  if (opened->file != SegmentFile::kUnknown) readers_.Put(segment, opened, 1);
  if (IsRemoved(segment)) readers_.Erase(segment);
  return OpenSegmentPtr(std::move(opened));
}

Result<std::vector<FooterChunk>> SegmentCache::Window(SegmentId segment, uint32_t first_ordinal,
                                                      uint32_t count) {
  if (log_ != nullptr) {
    if (auto writer = log_->WriterOf(segment)) return writer->Window(first_ordinal, count);
  }
  SILTFS_ASSIGN_OR_RETURN(const OpenSegmentPtr opened, Open(segment));
  return opened->reader->ReadFooterWindow(first_ordinal, count);
}

// If the footer is damaged, the blocks are scanned. Without the scan, all chunks of a recompressed
// segment would be lost with its footer, because the offsets in index entries are not valid in the
// new file.
Result<SegmentCache::CachedTablePtr> SegmentCache::TableOf(const OpenSegment& segment) {
  const bool cacheable = segment.file != SegmentFile::kUnknown;
  if (cacheable) {
    if (auto table = tables_.Get(TableKey(segment.id, segment.file)))
      return NotEmpty(segment, std::move(table));
  }
  auto read = segment.reader->ReadBlockTable();
  if (read.ok() && read->blocks.front().first_ordinal != 0) return ScannedTableOf(segment);
  if (!read.ok()) {
    // A recompressed segment was sealed, even if its file now ends without a footer. If there is a
    // log, every segment without a writer was sealed, too.
    const bool unsealed = read.status().Is(StatusCode::kInvalidArgument) && log_ == nullptr &&
                          segment.file == SegmentFile::kOriginal;
    if (unsealed || read.status().Is(StatusCode::kIoError)) return std::move(read).status();
    read.status().IgnoreError("the blocks are scanned instead");
    return ScannedTableOf(segment);
  }
  auto table = std::make_shared<const CachedTable>(CachedTable{std::move(read).value()});
  if (cacheable)
    tables_.Put(TableKey(segment.id, segment.file), table, table->blocks.memory_bytes());
  return table;
}

Result<SegmentCache::CachedTablePtr> SegmentCache::ScannedTableOf(const OpenSegment& segment) {
  const bool cacheable = segment.file != SegmentFile::kUnknown;
  if (cacheable) {
    if (auto table = tables_.Get(TableKey(segment.id, segment.file)); table && table->scanned)
      return NotEmpty(segment, std::move(table));
  }
  auto scanned = segment.reader->ScanBlockTable();
  // If no block is whole, an empty table is cached, because another scan would read the whole file
  // again.
  const bool hopeless = scanned.status().Is(StatusCode::kCorruption);
  if (!scanned.ok() && !hopeless) return std::move(scanned).status();
  auto table = std::make_shared<const CachedTable>(
      CachedTable{hopeless ? BlockTable() : std::move(scanned).value(), true});
  if (cacheable)
    tables_.Put(TableKey(segment.id, segment.file), table, table->blocks.memory_bytes());
  return NotEmpty(segment, std::move(table));
}

Result<SegmentCache::CachedTablePtr> SegmentCache::NotEmpty(const OpenSegment& segment,
                                                            CachedTablePtr table) {
  if (!table->blocks.blocks.empty()) return table;
  return Status(StatusCode::kCorruption, "no block of the segment is whole")
      .At(segment.reader->path());
}

bool SegmentCache::HasWriter(const OpenSegment& segment) const {
  return log_ != nullptr && segment.file == SegmentFile::kOriginal &&
         log_->WriterOf(segment.id) != nullptr;
}

Result<std::optional<BlockTable::Found>> SegmentCache::FindBlockByScan(const OpenSegment& segment,
                                                                       uint32_t ordinal) {
  // The writer's table in memory, which FindBlock has used, has all blocks. A scan finds no others.
  if (HasWriter(segment)) return std::optional<BlockTable::Found>();
  SILTFS_ASSIGN_OR_RETURN(const auto table, ScannedTableOf(segment));
  return table->blocks.Find(ordinal);
}

// A segment with a writer still has its original file: only files of segments without a writer are
// replaced.
Result<std::optional<BlockTable::Found>> SegmentCache::FindBlock(const OpenSegment& segment,
                                                                 uint32_t ordinal) {
  if (log_ != nullptr && segment.file == SegmentFile::kOriginal) {
    if (auto writer = log_->WriterOf(segment.id)) {
      const auto place = writer->FindBlock(ordinal);
      if (!place) return std::optional<BlockTable::Found>();
      return std::optional(BlockTable::Found{*place, place->first_ordinal, 0});
    }
  }
  SILTFS_ASSIGN_OR_RETURN(auto table, TableOf(segment));
  return table->blocks.Find(ordinal);
}

}  // namespace siltfs
