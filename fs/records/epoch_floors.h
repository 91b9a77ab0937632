// The record of a store in a bucket that tells the objects of fenced writers from the store's own.
//
// A writer that was fenced may put the object of a segment at any later time, and the next writer
// may use the id of that segment, because the bucket never got the commit that claimed the id. So
// each epoch of the store's writer begins with a floor: one more than the highest id of which
// metadata had a record. What the store still needs of earlier epochs lies below it.
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

class EpochFloors {
 public:
  // Older floors are dropped. Then some objects of writers that were fenced long ago count as
  // unknown.
  static constexpr size_t kMost = 64;

  // An epoch begins. It is the newest one; `first` is FirstUnusedSegment.
  void Begin(uint32_t epoch, SegmentId first);
  // Whether a writer that was fenced has put this content, in the epoch `put_in`.
  bool IsForeign(SegmentId id, uint32_t put_in) const;
  bool empty() const { return floors_.empty(); }

  std::string Encode() const;
  static Result<EpochFloors> Decode(std::string_view value);

 private:
  struct Floor {
    uint32_t epoch = 0;
    SegmentId first = 0;
  };

  std::vector<Floor> floors_;  // both ascend strictly
};

// Empty if there is no record, or a malformed one, which fsck reports: then no object counts as
// that of a fenced writer.
Result<EpochFloors> ReadEpochFloors(const KvSnapshot& metadata);

// One more than the highest id of a segment that metadata has a record of, also if the segment is
// only to be removed. Makes a few dozen reads.
Result<SegmentId> FirstUnusedSegment(const KvSnapshot& metadata);

}  // namespace siltfs
