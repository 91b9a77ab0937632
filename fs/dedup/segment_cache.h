// Opens segments for reading and keeps the most recently used ones open; finds footer windows and
// blocks of sealed and open segments alike.
//
// Thread-safety: every call from any thread. Memory: the block tables of the segments used last, 8
// bytes a block (some 5 KiB for a segment of usual blocks), kTableBytes at most. Errors: kNotFound
// for a segment that is not there (an index entry that points into it is a miss), kCorruption and
// kIoError as SegmentReader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/dedup/lru_cache.h"
#include "fs/dedup/segment_log.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

class SegmentCache {
 public:
  // `log` may be null (read-only). All must outlive the cache.
  SegmentCache(Env& env, std::string store, StoreUuid uuid, const BlockCodec& codec,
               const SegmentLog* log, size_t open_files);

  Result<std::shared_ptr<SegmentReader>> Open(SegmentId segment);

  // The footer's entries from `first_ordinal` on, as far as the segment has them. kInvalidArgument
  // for a segment that has no footer and no writer: one that a crash left behind, in a read-only
  // mount.
  Result<std::vector<FooterChunk>> Window(SegmentId segment, uint32_t first_ordinal,
                                          uint32_t count);
  // The block that holds an ordinal, if the segment has it. Of an open segment's block the end is
  // not known: end_ordinal is that of the first chunk, and bytes 0.
  Result<std::optional<BlockTable::Found>> FindBlock(SegmentId segment, uint32_t ordinal);

 private:
  // The table of a segment with as many blocks as it can have takes 3 MiB.
  static constexpr size_t kTableBytes = 4u << 20;

  Result<std::shared_ptr<const BlockTable>> TableOf(SegmentId segment);

  Env& env_;
  const std::string store_;
  const StoreUuid uuid_;
  const BlockCodec& codec_;
  const SegmentLog* const log_;
  LruCache<SegmentId, SegmentReader> readers_;
  LruCache<SegmentId, const BlockTable> tables_{kTableBytes};
};

}  // namespace siltfs
