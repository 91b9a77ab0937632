// Recovers segments after an unclean shutdown: seals the segments that were open. After this, the
// replay (block_replay.h) enters the chunks that the index may lack.
//
// Errors: kCorruption if a block was written after a commit that metadata does not have
// (docs/crash-model.md, I5); then the mount is refused. Damage within segments is passed to
// `report`, and is not an error. A later read of a damaged chunk finds the damage again.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/former_segments.h"
#include "fs/records/segment_record.h"
#include "store/base/location.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

using ReportFinding = std::function<void(const std::string& sentence)>;

struct StoreIdentity {
  std::string store;  // path
  StoreUuid uuid;
  uint64_t last_commit = 0;  // that metadata has
  // Ascending. A store with deltas: the segments that may have chunks moved by garbage collection.
  // If recovery seals one of them, it is in its final form, because a moved chunk may be the base
  // of a delta and must stay whole.
  std::vector<SegmentId> moved = {};
  EpochFloors floors = {};
  FormerSegments former = {};
};

// Seals or removes every segment that was not sealed at the last commit, and removes what
// unfinished changes have left (SegmentStore::Recover). Updates `records`, and appends the same
// changes to `changes`. On return the changes of the segments are durable; the caller must write
// `changes` to metadata.
Status RecoverSegments(Env& env, SegmentStore& segments, const StoreIdentity& identity,
                       SegmentRecords& records, std::vector<Mutation>& changes,
                       const ReportFinding& report);

// Puts into the SegmentStore the sealed segments that are still in the files in which they were
// built (SegmentStore::FinishPuts). If the SegmentStore is full, they stay in these files.
Status PutSealedSegments(SegmentStore& segments, const SegmentRecords& records);

// Seals one segment, as RecoverSegments does. Call it for a segment that a clean unmount left
// unsealed and that was damaged after that. Returns the segment's new record, or `record` if
// nothing of the segment could be saved.
Result<SegmentRecord> RecoverSegment(Env& env, SegmentStore& segments,
                                     const StoreIdentity& identity, SegmentId id,
                                     const SegmentRecord& record, const ReportFinding& report);

}  // namespace siltfs
