// Rewrites the file (store/segment/segment_repair.h) and the record of damaged segments.
// RepairSegments handles damaged headers, footers and records; DropDamage handles damaged blocks.
//
// An intent is recorded before the new file is renamed over the old one. The write that changes the
// record removes the intent, as when a segment is recompressed (fs/recovery/segment_replacement.h).
// After an interruption the file in place shows which record is true.
//
// Not thread-safe. Errors: those of Env and of the key-value store. RepairSegments leaves a segment
// without any usable block unchanged.
#pragma once

#include <map>
#include <set>
#include <string>

#include "fs/check/check_store.h"
#include "fs/repair/repair_session.h"
#include "store/base/result.h"

namespace siltfs {

// For each segment, the codes of its findings.
using SegmentFindings = std::map<SegmentId, std::set<std::string>>;

// Rewrites headers, footers and records; returns the number of changed segments. Removes
// "segment-truncated" from the findings of the changed segments, so that DropDamage leaves them
// alone if this was their only damage.
Result<uint64_t> RepairSegments(RepairSession& session, SegmentFindings& findings);

// Removes damaged chunks from segments, and deltas whose bases are lost. Removes segments without a
// whole block, and the records of segments without a file. Before the call, the caller must have
// removed all references to the damaged chunks. Returns the number of changed segments.
Result<uint64_t> DropDamage(RepairSession& session, const CheckOptions& options,
                            const SegmentFindings& findings);

}  // namespace siltfs
