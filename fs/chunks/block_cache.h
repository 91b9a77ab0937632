// A cache that keeps the most recently used decoded blocks. If several threads ask for the same
// block at the same time, one of them decodes it and the others wait. The deltas of a block
// are cached as they are stored: to inflate them, other blocks have to be read, and two threads
// could wait for each other's blocks. So `decode` must not call the cache.
//
// Thread-safety: every call from any thread. Ownership: blocks are shared with their users. Memory:
// `capacity_bytes` of blocks, and evicted blocks that are still in use. Errors: those of decoding,
// which are not remembered. If a decoding fails, the thread that decoded gets the error, and the
// threads that waited try again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "fs/chunks/traffic_counters.h"
#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/lru_cache.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/segment/block.h"

namespace siltfs {

class BlockCache {
 public:
  using Decode = std::function<Result<DecodedBlockPtr>()>;

  // Where a block begins. `file` must not be kUnknown: blocks of such files are not cached.
  struct Place {
    SegmentId segment = kNoSegment;
    SegmentFile file = SegmentFile::kOriginal;
    uint32_t offset = 0;
  };

  explicit BlockCache(size_t capacity_bytes) : blocks_(capacity_bytes) {}

  // Returns the block at `place`; calls `decode` if the block is not cached.
  Result<DecodedBlockPtr> Get(const Place& place, const Decode& decode);
  // Returns the block if it is cached, else null.
  DecodedBlockPtr Find(const Place& place);
  // Decodes the block into the cache, unless it is cached or being decoded. False if decoding
  // failed.
  bool Prefetch(const Place& place, const Decode& decode);

  // How many blocks were decoded.
  uint64_t decoded() const { return decoded_; }
  // How many calls of Get and Find have found the block in the cache.
  uint64_t hits() const { return hits_.value(); }

 private:
  // A block that is being decoded; guarded by mutex_.
  struct Decoding {
    bool done = false;
    DecodedBlockPtr block;  // null if the decoding failed
  };
  using DecodingPtr = std::shared_ptr<Decoding>;

  // All offsets, including hints, are below kMaxSegmentTargetSize (2^25), so bit 31 of the key is
  // free.
  static uint64_t KeyOf(const Place& place) {
    const uint64_t recompressed = place.file == SegmentFile::kRecompressed ? 1 : 0;
    return uint64_t{place.segment} << 32 | recompressed << 31 | place.offset;
  }
  // Returns the block if it is cached under `key`. Otherwise returns null and sets `decoding`. If
  // no other thread is decoding the block, also sets `mine` to true. The caller must then call
  // Finish.
  DecodedBlockPtr Begin(uint64_t key, DecodingPtr& decoding, bool& mine) SILTFS_EXCLUDES(mutex_);
  Result<DecodedBlockPtr> Finish(uint64_t key, Decoding& decoding, const Decode& decode)
      SILTFS_EXCLUDES(mutex_);

  LruCache<uint64_t, const DecodedBlock> blocks_;
  std::atomic<uint64_t> decoded_{0};
  Counter64 hits_;
  Mutex mutex_;  // taken before the mutex of blocks_
  CondVar finished_;
  std::unordered_map<uint64_t, DecodingPtr> decoding_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
