// The decoded blocks used last, each decoded once however many threads ask for it at the same time:
// the others wait for the one that came first.
//
// Thread-safety: every call from any thread. Ownership: blocks are shared with whoever got them.
// Memory: `capacity_bytes` of blocks that nobody holds. Errors: those of decoding, which are not
// remembered: who waited for a block that could not be decoded tries himself.
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

  // Where a block begins. `file` is not kUnknown: nothing is cached of such.
  struct Place {
    SegmentId segment = kNoSegment;
    SegmentFile file = SegmentFile::kOriginal;
    uint32_t offset = 0;
  };

  explicit BlockCache(size_t capacity_bytes) : blocks_(capacity_bytes) {}

  // The block that begins there; `decode` is called if it is not here.
  Result<DecodedBlockPtr> Get(const Place& place, const Decode& decode);
  // Null unless it is here.
  DecodedBlockPtr Find(const Place& place);
  // Brings it in, unless it is here or somebody is about it. False if it could not be decoded.
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

  // Offsets are below kMaxSegmentTargetSize, 2^25; those of hints too.
  static uint64_t KeyOf(const Place& place) {
    const uint64_t settled = place.file == SegmentFile::kSettled ? 1 : 0;
    return uint64_t{place.segment} << 32 | settled << 31 | place.offset;
  }
  // The block if it is here; else who decodes it, made by the caller if `mine`.
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
