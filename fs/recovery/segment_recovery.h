// Recovers segments after an unclean shutdown: seals the segments that were open. (Then
// block_replay.h enters the chunks into the index that it may lack.)
//
// Errors: kCorruption if metadata is older than the blocks say (docs/crash-model.md, I5); the mount
// is refused then. Damage within segments is passed to `report`, and left for reads to find.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fs/kv/kv_store.h"
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
};

// Seals or removes every segment that was not sealed at the last commit, and removes the rest of
// unfinished changes (SegmentStore::Recover). Updates `records`, and appends the same changes to
// `changes`. On return all changes except the records are durable.
Status RecoverSegments(Env& env, SegmentStore& segments, const StoreIdentity& identity,
                       SegmentRecords& records, std::vector<Mutation>& changes,
                       const ReportFinding& report);

// Puts the sealed segments that are still in the files in which they were built
// (SegmentStore::FinishPuts). They stay there if the SegmentStore is full.
Status PutSealedSegments(SegmentStore& segments, const SegmentRecords& records);

// Does the same for one segment that a clean unmount left unsealed, and that has changed since.
// Returns its record afterwards: the same one if nothing of the segment could be saved.
Result<SegmentRecord> RecoverSegment(Env& env, SegmentStore& segments,
                                     const StoreIdentity& identity, SegmentId id,
                                     const SegmentRecord& record, const ReportFinding& report);

}  // namespace siltfs
