// Finds chunks for which the index leads nowhere or to a damaged place. A search reads footers of
// segments, or the blocks of segments without a footer.
//
// With a segment guide (fs/guide/segment_guide.h), a search reads the footers of the few segments
// that may hold the chunk. If the chunk cannot be read there, the caller asks for a search of all
// segments, which takes long in a large store.
//
// Results are remembered, even if a chunk was not found. One search covers all chunks that were
// lost together, and answers all later calls for them. If a chunk is stored later, its remembered
// result does no harm, because callers ask the index first.
//
// Thread-safety: any thread. One thread at a time searches all segments; other threads that want
// the same wait for its results. Memory: 2 MB at most, and the footer of one segment for each
// thread that searches. Errors: those of SegmentStore::List, if the segments cannot be listed; an
// unreadable segment is skipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/guide/segment_guide.h"
#include "fs/segments/segment_cache.h"
#include "store/base/location.h"
#include "store/base/lru_cache.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SegmentSearch {
 public:
  // `segments` and `guide` must outlive it; `guide` may be null.
  SegmentSearch(SegmentCache& segments, SegmentGuide* guide) : segments_(segments), guide_(guide) {}

  enum class Extent : uint8_t {
    kOnlyGuided,  // the segments that the guide names; none if there is no usable guide
    kGuided,      // the segments that the guide names; all segments if there is no usable guide
    kAll,
  };
  struct Found {
    // The places, without block offsets, of chunks with this name prefix.
    std::vector<Location> places;
    bool all = false;  // all segments were searched
    Status failure;    // a device error, because of which the chunk may lie in another place, too
  };
  using FoundPtr = std::shared_ptr<const Found>;
  // Searches chunks with a name prefix (ChunkName::Prefix64). If Find has to read segments, it also
  // searches for the prefixes in `companions`.
  Result<FoundPtr> Find(uint64_t prefix, std::span<const uint64_t> companions, Extent extent)
      SILTFS_EXCLUDES(mutex_);
  // True if Find would return a remembered result.
  bool Remembers(uint64_t prefix, Extent extent) { return Remembered(prefix, extent) != nullptr; }
  // Call when the remembered places are no longer right. The next Find then searches again.
  void Forget(uint64_t prefix) { found_.Erase(prefix); }

  // Segments whose footers or blocks were read.
  uint64_t segments_read() const { return segments_read_; }

 private:
  using Wanted = std::unordered_map<uint64_t, std::vector<Location>>;
  FoundPtr Remembered(uint64_t prefix, Extent extent);
  // Remembers all places if there was no failure. Returns those of `prefix`.
  FoundPtr Remember(uint64_t prefix, Wanted wanted, bool all, const Status& failure);
  // Null if there is no usable guide.
  FoundPtr FindGuided(uint64_t prefix, std::span<const uint64_t> companions);
  // These functions fail only because of device errors, which may be temporary. Damaged segments
  // are skipped.
  Status SearchAll(Wanted& wanted);
  Status SearchSegment(SegmentId segment, Wanted& wanted);
  bool SearchOpenSegment(SegmentId segment, Wanted& wanted);
  static void Take(SegmentId segment, uint32_t first_ordinal, std::span<const FooterChunk> chunks,
                   Wanted& wanted);

  SegmentCache& segments_;
  SegmentGuide* const guide_;
  std::atomic<uint64_t> segments_read_{0};
  static constexpr size_t kMostRemembered = 16'384;
  LruCache<uint64_t, const Found> found_{kMostRemembered};
  Mutex mutex_;  // held during a search of all segments
};

}  // namespace siltfs
