// The most recently used decoded blocks. Each is decoded once, however many threads ask for it at
// the same time: the others wait for the first.
//
// Thread-safety: every call from any thread. Ownership: blocks are shared with their users. Memory:
// `capacity_bytes` of blocks, and evicted blocks that are still in use. Errors: those of decoding,
// which are not remembered: a thread that waited for a failed decoding tries itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "fs/dedup/lru_cache.h"
#include "fs/dedup/segment_cache.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/segment/block.h"

namespace siltfs {

class BlockCache {
 public:
  using Decode = std::function<Result<DecodedBlockPtr>()>;

  // Where a block begins. `file` is not kUnknown: such blocks are not cached.
  struct Place {
    SegmentId segment = kNoSegment;
    SegmentFile file = SegmentFile::kOriginal;
    uint32_t offset = 0;
  };

  explicit BlockCache(size_t capacity_bytes) : blocks_(capacity_bytes) {}

  // The block that begins there; `decode` is called if it is not cached.
  Result<DecodedBlockPtr> Get(const Place& place, const Decode& decode);
  // Null unless it is cached.
  DecodedBlockPtr Find(const Place& place);
  // Brings it in, unless it is cached or being decoded. False if it could not be decoded.
  bool Prefetch(const Place& place, const Decode& decode);

  // How often a block was decoded.
  uint64_t decoded() const { return decoded_; }

 private:
  // A block that is being decoded; guarded by mutex_.
  struct Decoding {
    bool done = false;
    DecodedBlockPtr block;  // null: it failed
  };
  using DecodingPtr = std::shared_ptr<Decoding>;

  // Offsets are below kMaxSegmentTargetSize, 2^25; those of hints, too.
  static uint64_t KeyOf(const Place& place) {
    const uint64_t recompressed = place.file == SegmentFile::kRecompressed ? 1 : 0;
    return uint64_t{place.segment} << 32 | recompressed << 31 | place.offset;
  }
  // The block if it is cached; else sets `decoding`, which the caller must perform if `mine`.
  DecodedBlockPtr Begin(uint64_t key, DecodingPtr& decoding, bool& mine) SILTFS_EXCLUDES(mutex_);
  Result<DecodedBlockPtr> Finish(uint64_t key, Decoding& decoding, const Decode& decode)
      SILTFS_EXCLUDES(mutex_);

  LruCache<uint64_t, const DecodedBlock> blocks_;
  std::atomic<uint64_t> decoded_{0};
  Mutex mutex_;  // taken before that of blocks_
  CondVar finished_;
  std::unordered_map<uint64_t, DecodingPtr> decoding_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
