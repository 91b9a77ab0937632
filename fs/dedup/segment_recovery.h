// What a mount does with segments after an unclean shutdown: it seals what was open. (What the
// index may not have of them, block_replay.h finds.)
//
// Errors: kCorruption where metadata is older than the blocks say (docs/crash-model.md, I5), which
// refuses the mount. Damage within segments is reported through `report` and left for reads to
// meet.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"
#include "store/base/location.h"
#include "store/env/env.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

using SegmentRecords = std::vector<std::pair<SegmentId, SegmentRecord>>;  // ascending ids
using ReportFinding = std::function<void(const std::string& sentence)>;

struct StoreIdentity {
  std::string store;  // path
  StoreUuid uuid;
  uint64_t last_commit = 0;  // that metadata has
};

// Seals or removes every segment that was not sealed at the last commit, and drops leftover
// temporary files. Brings `records` up to date and appends the same changes to `changes`. Durable
// (but for the records) on return.
Status RecoverSegments(Env& env, const StoreIdentity& identity, SegmentRecords& records,
                       std::vector<Mutation>& changes, const ReportFinding& report);

// Does the same for one segment that a clean unmount left unsealed, and that is not as it was left.
// Its record afterwards: the same one if nothing of the segment could be saved.
Result<SegmentRecord> RecoverSegment(Env& env, const StoreIdentity& identity, SegmentId id,
                                     const SegmentRecord& record, const ReportFinding& report);

}  // namespace siltfs
