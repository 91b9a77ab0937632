// Where a chunk may lie: name -> locations, from the footer cache, the index, or a search of
// segments. A location may be wrong; the caller confirms it in the block.
//
// Thread-safety: every call from any thread. Errors: those of the index and of the search count as
// "the chunk is not known there", and the first one is kept for the caller. Memory: 100 bytes for
// each entry that a read-only mount could not put into the index, and segment_search.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/chunks/footer_cache.h"
#include "fs/chunks/segment_search.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_cache.h"
#include "index/chunk_index.h"
#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/status.h"

namespace siltfs {

class ChunkPlaces {
 public:
  // `guide` says which segments may hold a chunk; may be null. `unindexed`: the entries that a
  // read-only mount could not put into the index. All must outlive it.
  ChunkPlaces(SegmentCache& segments, ChunkIndex& index, FooterCache& windows,
              const DamageList& damage, SegmentGuide* guide, std::vector<IndexEntry> unindexed);

  // The first failure in the search for a chunk. It is reported if the chunk is not found anywhere.
  // A device error replaces other failures: the chunk may lie where the device has failed.
  class Damage {
   public:
    void Note(Status status);
    const Status& first() const { return first_; }

   private:
    Status first_;
  };

  enum class Effort : uint8_t {
    kLookUp,     // searches segments only if a guide names them
    kSearchAll,  // searches all segments if everything else fails
  };
  // Tries a place. True: the chunk is there, and the visit ends. False: it is not there.
  using Try = std::function<Result<bool>(const Location& location, bool offset_known)>;
  // Returns the name prefixes of other chunks, so that a search of segments covers these chunks,
  // too. Called before a search. `led_to` is the location to which the index leads, if any.
  using Companions = std::function<std::vector<uint64_t>(const std::optional<Location>& led_to)>;
  // Tries the places where the chunk may lie, until `attempt` returns true. Returns whether it did.
  bool Visit(const ChunkName& name, Effort effort, const Companions& companions, const Try& attempt,
             Damage& damage);

  // Asks the index for several chunks. Chunks without an answer stay empty.
  void LookUp(std::span<const ChunkName> names, std::span<std::optional<Location>> locations);
  // Finds the chunk in the footer cache, unless it is on the damage list there.
  std::optional<FooterCache::Hit> FindInWindows(const ChunkName& name);
  // Loads the footer entries around a place into the footer cache. Failures are dropped, because
  // reads do not depend on the cache.
  void LoadWindow(SegmentId segment, uint32_t ordinal);

  // Segments that were read to search chunks.
  uint64_t segments_searched() const { return search_.segments_read(); }

 private:
  bool SearchSegments(const ChunkName& name, Effort effort,
                      const std::function<std::vector<uint64_t>()>& companions, const Try& attempt,
                      Damage& damage);

  SegmentCache& segments_;
  ChunkIndex& index_;
  FooterCache& windows_;
  const DamageList& damage_;
  SegmentSearch search_;
  std::unordered_map<ChunkName, Location> unindexed_;  // constant after construction
};

}  // namespace siltfs
