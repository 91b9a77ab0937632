// The walk behind every mark (mark.h): all references of one commit's metadata.
//
// Thread-safety: one thread. Errors: those of snapshot, nodes, `visit` and pace; kCorruption for
// metadata that cannot be decoded.
#pragma once

#include <functional>

#include "fs/mark/mark.h"
#include "fs/mark/node_set.h"

namespace siltfs {

// Calls a MarkPace at intervals.
class Pacer {
 public:
  explicit Pacer(const MarkPace& pace) : pace_(pace) {}

  // Counts work. The unit is the work of passing one name to `visit`. Calls the pace when enough
  // work has been counted.
  Status Step(uint32_t work = 1) {
    work_ += work;
    if (work_ < kWorkBetweenCalls) return Status::Ok();
    work_ = 0;
    return pace_ ? pace_() : Status::Ok();
  }

 private:
  static constexpr uint32_t kWorkBetweenCalls = 4096;

  const MarkPace& pace_;
  uint32_t work_ = 0;
};

using ReferenceVisit = std::function<Status(const ChunkName&)>;

// Like ForEachReference, but skips nodes that are in `walked`, and everything under them. Adds all
// other nodes to `walked`.
Status WalkReferences(const KvSnapshot& metadata, NodeStore& nodes, NodeSet& walked, Pacer& pacer,
                      const ReferenceVisit& visit);

}  // namespace siltfs
