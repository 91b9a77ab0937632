// Opens segments for reading and keeps the most recently used ones open; finds footer windows and
// blocks of sealed and open segments alike.
//
// A sealed segment's file may be replaced once, by a denser one with the same chunks at other
// offsets (recompressor.h). Whoever has the old file open goes on reading it; so an offset means
// something only together with the file it is from, which is what OpenSegment holds together.
//
// Thread-safety: every call from any thread; none holds a lock over I/O. Memory: the block tables
// of the segments used last, 8 bytes a block (some 5 KiB for a segment of usual blocks),
// kTableBytes at most; 4 bytes for each settled segment, and for each that was removed. Errors:
// kNotFound for a segment that is not there (an index entry that points into it is a miss),
// kCorruption and kIoError as SegmentReader.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/dedup/lru_cache.h"
#include "fs/dedup/segment_log.h"
#include "fs/dedup/segment_set.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

// Which of the files that a segment has in its life.
enum class SegmentFile : uint8_t {
  kOriginal,  // the one that was written to; index entries have its offsets as hints
  kSettled,   // what stays
  kUnknown,   // one of the two, opened while it was being replaced: nothing of it may be cached
};

// A segment's file. What is read through it belongs together.
struct OpenSegment {
  SegmentId id = kNoSegment;
  SegmentFile file = SegmentFile::kOriginal;
  std::unique_ptr<const SegmentReader> reader;
};
using OpenSegmentPtr = std::shared_ptr<const OpenSegment>;

class SegmentCache {
 public:
  // `log` may be null (read-only). All must outlive the cache. `settled`: ids, ascending.
  SegmentCache(Env& env, std::string store, StoreUuid uuid, const BlockCodec& codec,
               const SegmentLog* log, size_t open_files, std::vector<SegmentId> settled = {});

  Result<OpenSegmentPtr> Open(SegmentId segment);

  // The footer's entries from `first_ordinal` on, as far as the segment has them. kInvalidArgument
  // for a segment that has no footer and no writer: one that a crash left behind, in a read-only
  // mount.
  Result<std::vector<FooterChunk>> Window(SegmentId segment, uint32_t first_ordinal,
                                          uint32_t count);
  // The block of this file that holds an ordinal, if the segment has it. Of an open segment's block
  // the end is not known: end_ordinal is that of the first chunk, and bytes 0.
  Result<std::optional<BlockTable::Found>> FindBlock(const OpenSegment& segment, uint32_t ordinal);
  // The same by the blocks themselves, for who has not found the ordinal where FindBlock says: the
  // block table is not verified when it is read. From then on FindBlock goes by them, too.
  Result<std::optional<BlockTable::Found>> FindBlockByScan(const OpenSegment& segment,
                                                           uint32_t ordinal);

  // Which file Open would open at this moment.
  SegmentFile FileOf(SegmentId segment) const SILTFS_EXCLUDES(files_mutex_);

  // `install` puts the segment's new file in place, durably. One segment at a time may undergo
  // that. After a failure, which is returned, nobody knows which file is in place, and nothing of
  // the segment is cached any more.
  Status Replace(SegmentId segment, const std::function<Status()>& install)
      SILTFS_EXCLUDES(files_mutex_);
  // The segment keeps the file it has as the settled one.
  void SetSettled(SegmentId segment) SILTFS_EXCLUDES(files_mutex_);

  // The segment is about to be removed for good: from now on it is not there, and its file is
  // closed when those who have it have let go.
  void Remove(SegmentId segment) SILTFS_EXCLUDES(files_mutex_);
  bool IsRemoved(SegmentId segment) const { return removed_->Contains(segment); }
  // All that were; lives on for who asks after the cache has gone.
  std::shared_ptr<const SegmentSet> removed() const { return removed_; }

 private:
  // The table of a segment with as many blocks as it can have takes 3 MiB.
  static constexpr size_t kTableBytes = 4u << 20;

  static uint64_t TableKey(SegmentId segment, SegmentFile file) {
    return uint64_t{segment} << 1 | (file == SegmentFile::kSettled ? 1 : 0);
  }
  struct CachedTable {
    BlockTable blocks;
    bool scanned = false;  // made from the blocks, not from the footer; without any it has failed
  };
  using CachedTablePtr = std::shared_ptr<const CachedTable>;
  bool HasWriter(const OpenSegment& segment) const;
  Result<CachedTablePtr> TableOf(const OpenSegment& segment);
  Result<CachedTablePtr> ScannedTableOf(const OpenSegment& segment);
  static Result<CachedTablePtr> NotEmpty(const OpenSegment& segment, CachedTablePtr table);

  Env& env_;
  const std::string store_;
  const StoreUuid uuid_;
  const BlockCodec& codec_;
  const SegmentLog* const log_;
  LruCache<SegmentId, const OpenSegment> readers_;
  LruCache<uint64_t, const CachedTable> tables_{kTableBytes};  // by TableKey
  const std::shared_ptr<SegmentSet> removed_ = std::make_shared<SegmentSet>();

  mutable SharedMutex files_mutex_;
  SegmentId replacing_ SILTFS_GUARDED_BY(files_mutex_) = kNoSegment;
  std::vector<SegmentId> settled_ SILTFS_GUARDED_BY(files_mutex_);  // ascending
};

}  // namespace siltfs
