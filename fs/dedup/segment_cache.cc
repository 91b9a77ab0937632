#include "fs/dedup/segment_cache.h"

#include <algorithm>

namespace siltfs {

SegmentCache::SegmentCache(Env& env, std::string store, StoreUuid uuid, const BlockCodec& codec,
                           const SegmentLog* log, size_t open_files, std::vector<SegmentId> settled)
    : env_(env),
      store_(std::move(store)),
      uuid_(uuid),
      codec_(codec),
      log_(log),
      readers_(open_files),
      settled_(std::move(settled)) {}

SegmentFile SegmentCache::FileOf(SegmentId segment) const {
  ReaderLock lock(files_mutex_);
  if (segment == replacing_) return SegmentFile::kUnknown;
  return std::binary_search(settled_.begin(), settled_.end(), segment) ? SegmentFile::kSettled
                                                                       : SegmentFile::kOriginal;
}

Status SegmentCache::Replace(SegmentId segment, const std::function<Status()>& install) {
  {
    WriterLock lock(files_mutex_);
    replacing_ = segment;
  }
  SILTFS_RETURN_IF_ERROR(install());
  SetSettled(segment);
  return Status::Ok();
}

void SegmentCache::SetSettled(SegmentId segment) {
  {
    WriterLock lock(files_mutex_);
    if (segment == replacing_) replacing_ = kNoSegment;
    const auto place = std::lower_bound(settled_.begin(), settled_.end(), segment);
    if (place == settled_.end() || *place != segment) settled_.insert(place, segment);
  }
  // Whoever puts the old file in again after this is not believed: see Open.
  readers_.Erase(segment);
}

void SegmentCache::Remove(SegmentId segment) {
  removed_->Add(segment);  // first: whoever opened it before looks again after having cached it
  readers_.Erase(segment);
  for (const SegmentFile file : {SegmentFile::kOriginal, SegmentFile::kSettled})
    tables_.Erase(TableKey(segment, file));
  WriterLock lock(files_mutex_);
  const auto place = std::lower_bound(settled_.begin(), settled_.end(), segment);
  if (place != settled_.end() && *place == segment) settled_.erase(place);
}

// The name leads to the one file before a replacement and to the other after it. Where both looks
// at the state agree, the file that was opened in between is the one that they say, for no state
// but kUnknown ever comes back.
Result<OpenSegmentPtr> SegmentCache::Open(SegmentId segment) {
  if (IsRemoved(segment)) return Status(StatusCode::kNotFound, "the segment was removed");
  const SegmentFile before = FileOf(segment);
  if (before != SegmentFile::kUnknown) {
    auto cached = readers_.Get(segment);
    if (cached && cached->file == before) return cached;
  }
  SILTFS_ASSIGN_OR_RETURN(auto reader, SegmentReader::Open(env_, store_, {uuid_, segment}, codec_));
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

// Without the footer there are the blocks. Offsets that others know are of no use in a settled
// segment's file, so that rot in the footer would cost all of its chunks.
Result<SegmentCache::CachedTablePtr> SegmentCache::TableOf(const OpenSegment& segment) {
  const bool cacheable = segment.file != SegmentFile::kUnknown;
  if (cacheable) {
    if (auto table = tables_.Get(TableKey(segment.id, segment.file)))
      return NotEmpty(segment, std::move(table));
  }
  auto read = segment.reader->ReadBlockTable();
  if (read.ok() && read->blocks.front().first_ordinal != 0) return ScannedTableOf(segment);
  if (!read.ok()) {
    // What was settled was sealed, whatever the file ends in by now, and so was all that nobody
    // writes to where there is a log.
    const bool unsealed = read.status().Is(StatusCode::kInvalidArgument) && log_ == nullptr &&
                          segment.file == SegmentFile::kOriginal;
    if (unsealed || read.status().Is(StatusCode::kIoError)) return std::move(read).status();
    read.status().IgnoreError("the blocks say it, too");
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
  // Where no block is whole, none is the next time: a scan reads all of the file.
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
  if (HasWriter(segment)) return std::optional<BlockTable::Found>();  // its table is in memory
  SILTFS_ASSIGN_OR_RETURN(const auto table, ScannedTableOf(segment));
  return table->blocks.Find(ordinal);
}

// What has a writer was not replaced when it was opened: only what has none is.
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
