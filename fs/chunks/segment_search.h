// Finds chunks for which the index leads nowhere or to a damaged place. It reads the footers of all
// segments, or the blocks of segments without a footer. This takes long in a large store.
//
// So results are remembered, even if a chunk was not found. One search covers all chunks that were
// lost together, and answers all later calls for them. If a chunk is stored later, its remembered
// result does no harm, because callers ask the index first.
//
// Thread-safety: any thread. One thread searches at a time; other threads wait for its results.
// Memory: 2 MB at most, and the footer of one segment. Errors: those of SegmentStore::List, if the
// segments cannot be listed; an unreadable segment is skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/lru_cache.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SegmentSearch {
 public:
  // `segments` must outlive it.
  explicit SegmentSearch(SegmentCache& segments) : segments_(segments) {}

  // Returns the places, without block offsets, of all chunks with this name prefix
  // (ChunkName::Prefix64). If Find has to search, it also searches for the prefixes in
  // `companions`.
  using Places = std::shared_ptr<const std::vector<Location>>;
  Result<Places> Find(uint64_t prefix, std::span<const uint64_t> companions)
      SILTFS_EXCLUDES(mutex_);
  // Call when the remembered places are no longer right. The next Find then searches again.
  void Forget(uint64_t prefix) { found_.Erase(prefix); }

 private:
  using Wanted = std::unordered_map<uint64_t, std::vector<Location>>;
  // False if some segment could not be read for a reason that may be temporary.
  Result<bool> SearchAll(Wanted& wanted) SILTFS_REQUIRES(mutex_);
  bool SearchSegment(SegmentId segment, Wanted& wanted) SILTFS_REQUIRES(mutex_);
  bool SearchOpenSegment(SegmentId segment, Wanted& wanted) SILTFS_REQUIRES(mutex_);
  static void Take(SegmentId segment, uint32_t first_ordinal, std::span<const FooterChunk> chunks,
                   Wanted& wanted);

  SegmentCache& segments_;
  static constexpr size_t kMostRemembered = 16'384;
  LruCache<uint64_t, const std::vector<Location>> found_{kMostRemembered};
  Mutex mutex_;
};

}  // namespace siltfs
