// The record of a store in a bucket that tells the objects of fenced writers from the store's own.
//
// A writer that was fenced may put the object of a segment at any later time, and the next writer
// may use the id of that segment, because the bucket never got the commit that claimed the id. So
// each epoch of the store's writer begins with a floor: one more than the highest id of which
// metadata had a record. What the store still needs of earlier epochs lies below it. Of the ids
// just below it, some may have no record, because their segments were open and empty: these are
// kept, too.
//
// Thread-safety: as a value. Errors: those of the key-value store; kCorruption for a malformed
// record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/location.h"

namespace siltfs {

// The ids that metadata had no record of when an epoch began.
struct UnusedSegments {
  SegmentId first = 0;      // this one, and all above it
  uint64_t below_mask = 0;  // bit i: first - 1 - i
};

class EpochFloors {
 public:
  // Older floors are dropped. Then some objects of writers that were fenced long ago count as
  // unknown.
  static constexpr size_t kMost = 64;

  // An epoch begins. It is the newest one; `unused` is of the metadata now.
  void Begin(uint32_t epoch, const UnusedSegments& unused);
  // Whether a writer that was fenced has put this content, in the epoch `put_in`.
  bool IsForeign(SegmentId id, uint32_t put_in) const;
  // Whether a later epoch has begun.
  bool HasEnded(uint32_t epoch) const { return !floors_.empty() && epoch < floors_.back().epoch; }
  bool empty() const { return floors_.empty(); }

  std::string Encode() const;
  static Result<EpochFloors> Decode(std::string_view value);

 private:
  struct Floor {
    uint32_t epoch = 0;
    UnusedSegments unused;
  };

  std::vector<Floor> floors_;  // the epochs and the first ids ascend strictly
};

// Empty if there is no record, or a malformed one, which fsck reports: then no object counts as
// that of a fenced writer.
Result<EpochFloors> ReadEpochFloors(const KvSnapshot& metadata);

// A segment that is only to be removed counts as used. Makes some 200 reads.
Result<UnusedSegments> ReadUnusedSegments(const KvSnapshot& metadata);

}  // namespace siltfs
