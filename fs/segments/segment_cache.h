// Opens segments for reading and keeps the most recently used ones open; finds footer entries and
// blocks of sealed and open segments alike.
//
// A sealed segment's file may be replaced once, by a denser one with the same chunks at other
// offsets (recompressor.h). Threads that have the old file open go on reading it. So an offset is
// valid only in the file in which it was found. An OpenSegment stands for one such file.
//
// Thread-safety: every call from any thread; no call holds a lock during I/O. Memory: at most
// kTableBytes for the block tables of the segments used last, and 4 bytes for each recompressed or
// removed segment. A block table has 8 bytes for each block, some 5 KiB for a segment of usual
// blocks. Errors: kNotFound if the segment does not exist (then an index entry that leads into it
// counts as missing), and kCorruption and kIoError from SegmentReader.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fs/segments/segment_log.h"
#include "fs/segments/segment_set.h"
#include "store/base/lru_cache.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

// The files that a segment has during its life.
enum class SegmentFile : uint8_t {
  kOriginal,      // written by the log; index entries have its offsets as hints
  kRecompressed,  // the final file: it is not replaced again
  kUnknown,       // one of the two, opened during a replacement: its data must not be cached
};

// A segment's file. Offsets read through it are valid in this file only.
struct OpenSegment {
  SegmentId id = kNoSegment;
  SegmentFile file = SegmentFile::kOriginal;
  std::unique_ptr<const SegmentReader> reader;
};
using OpenSegmentPtr = std::shared_ptr<const OpenSegment>;

class SegmentCache {
 public:
  // `log` may be null if the store is open only for reading. `store`, `codec` and `log` must
  // outlive the cache. `recompressed`: ids of the recompressed segments, ascending.
  SegmentCache(SegmentStore& store, StoreUuid uuid, const BlockCodec& codec, const SegmentLog* log,
               size_t open_files, std::vector<SegmentId> recompressed = {});

  const BlockCodec& codec() const { return codec_; }
  // The place of the sealed segments. A caller that replaces or removes a segment there must also
  // call Replace or Remove of this class.
  SegmentStore& store() const { return store_; }

  Result<OpenSegmentPtr> Open(SegmentId segment);

  // Returns at most `count` entries of the footer, from `first_ordinal` on. Fails with
  // kInvalidArgument for a segment without a footer and without a writer. A crash may leave such a
  // segment, and a read-only mount does not seal it.
  Result<std::vector<FooterChunk>> Window(SegmentId segment, uint32_t first_ordinal,
                                          uint32_t count);
  // Returns the block of this file that holds an ordinal; empty if the segment has no such ordinal.
  // For a block of an open segment the end is unknown: end_ordinal is the ordinal of its first
  // chunk, and bytes is 0.
  Result<std::optional<BlockTable::Found>> FindBlock(const OpenSegment& segment, uint32_t ordinal);
  // Like FindBlock, but scans the blocks of the file. Call it if the ordinal is not in the block
  // that FindBlock returned: FindBlock reads the block table without verifying it. After this call
  // FindBlock uses the result of the scan, too.
  Result<std::optional<BlockTable::Found>> FindBlockByScan(const OpenSegment& segment,
                                                           uint32_t ordinal);

  // The file that Open would open at this moment.
  SegmentFile FileOf(SegmentId segment) const SILTFS_EXCLUDES(files_mutex_);

  // Replaces the segment's file: calls `install`, which durably puts the new file in place. One
  // segment at a time may be replaced. If `install` fails, returns its status. Then it is unknown
  // which file is in place, and nothing of the segment is cached any more.
  Status Replace(SegmentId segment, const std::function<Status()>& install)
      SILTFS_EXCLUDES(files_mutex_);
  // From now on the segment's current file counts as the recompressed one.
  void SetRecompressed(SegmentId segment) SILTFS_EXCLUDES(files_mutex_);

  // Call when the segment is about to be removed permanently. From now on Open does not find the
  // segment. The segment's file is closed when all users have released it.
  void Remove(SegmentId segment) SILTFS_EXCLUDES(files_mutex_);
  bool IsRemoved(SegmentId segment) const { return removed_->Contains(segment); }
  // All removed segments; may outlive the cache.
  std::shared_ptr<const SegmentSet> removed() const { return removed_; }

 private:
  // The block table of a segment with the largest possible number of blocks takes 3 MiB.
  static constexpr size_t kTableBytes = 4u << 20;

  static uint64_t TableKey(SegmentId segment, SegmentFile file) {
    return uint64_t{segment} << 1 | (file == SegmentFile::kRecompressed ? 1 : 0);
  }
  struct CachedTable {
    BlockTable blocks;
    bool scanned = false;  // made from the blocks, not the footer; empty if no block is whole
  };
  using CachedTablePtr = std::shared_ptr<const CachedTable>;
  bool HasWriter(const OpenSegment& segment) const;
  Result<CachedTablePtr> TableOf(const OpenSegment& segment);
  Result<CachedTablePtr> ScannedTableOf(const OpenSegment& segment);
  static Result<CachedTablePtr> NotEmpty(const OpenSegment& segment, CachedTablePtr table);

  SegmentStore& store_;
  const StoreUuid uuid_;
  const BlockCodec& codec_;
  const SegmentLog* const log_;
  LruCache<SegmentId, const OpenSegment> readers_;
  LruCache<uint64_t, const CachedTable> tables_{kTableBytes};  // by TableKey
  const std::shared_ptr<SegmentSet> removed_ = std::make_shared<SegmentSet>();

  mutable SharedMutex files_mutex_;
  SegmentId replacing_ SILTFS_GUARDED_BY(files_mutex_) = kNoSegment;
  std::vector<SegmentId> recompressed_ SILTFS_GUARDED_BY(files_mutex_);  // ascending
};

}  // namespace siltfs
