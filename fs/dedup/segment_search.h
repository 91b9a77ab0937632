// Where chunks lie that the index does not lead to, or only to a place that is damaged: asks the
// footers of all segments, of those without one the blocks, which takes long in a large store.
//
// So what was found is remembered, as well as that nothing was: one search answers for all chunks
// that were lost together, and for everybody who asks after them again. What is stored later is
// found by the index before anybody asks here.
//
// Thread-safety: any thread; one search at a time, the others wait for what it finds. Memory: 2 MB
// at most, and the footer of one segment. Errors: Env's, where the segments cannot be listed; one
// that cannot be read has nothing to offer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/dedup/lru_cache.h"
#include "fs/dedup/segment_cache.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SegmentSearch {
 public:
  // Both must outlive it.
  SegmentSearch(Env& env, SegmentCache& segments, std::string store)
      : env_(env), segments_(segments), store_(std::move(store)) {}

  // The places, without block offsets, where footers have a chunk whose name begins like this one
  // (ChunkName::Prefix64). Looks for those of `companions`, too, if it has to look.
  using Places = std::shared_ptr<const std::vector<Location>>;
  Result<Places> Find(uint64_t prefix, std::span<const uint64_t> companions)
      SILTFS_EXCLUDES(mutex_);
  // What was remembered is not so any more.
  void Forget(uint64_t prefix) { found_.Erase(prefix); }

 private:
  using Wanted = std::unordered_map<uint64_t, std::vector<Location>>;
  // False if some segment could not be asked, for reasons that may pass.
  Result<bool> SearchAll(Wanted& wanted) SILTFS_REQUIRES(mutex_);
  bool SearchSegment(SegmentId segment, Wanted& wanted) SILTFS_REQUIRES(mutex_);
  bool SearchOpenSegment(SegmentId segment, Wanted& wanted) SILTFS_REQUIRES(mutex_);
  static void Take(SegmentId segment, uint32_t first_ordinal, std::span<const FooterChunk> chunks,
                   Wanted& wanted);

  Env& env_;
  SegmentCache& segments_;
  const std::string store_;
  static constexpr size_t kMostRemembered = 16'384;
  LruCache<uint64_t, const std::vector<Location>> found_{kMostRemembered};
  Mutex mutex_;
};

}  // namespace siltfs
