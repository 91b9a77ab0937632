// Rewrites the file (store/segment/segment_repair.h) and the record of damaged segments.
// RepairSegments does so for a damaged header, footer or record, DropDamage for damaged blocks.
//
// An intent is recorded before the new file is renamed over the old one, and is removed by the
// write that changes the record, as when a segment is recompressed
// (fs/dedup/segment_replacement.h). After an interruption the file in place shows which record is
// true.
//
// Not thread-safe. Errors: those of Env and of the key-value store. RepairSegments leaves a segment
// without any usable block unchanged.
#pragma once

#include <map>
#include <set>
#include <string>

#include "fs/repair/repair_session.h"
#include "store/base/result.h"

namespace siltfs {

// Codes of findings by segment.
using SegmentFindings = std::map<SegmentId, std::set<std::string>>;

// Rewrites headers, footers and records; returns the number of changed segments. Removes
// "segment-truncated" from the findings of the changed segments.
Result<uint64_t> RepairSegments(RepairSession& session, SegmentFindings& findings);

// Removes damaged chunks, which must be unreferenced, from segments, and removes the records of
// segments without a whole block or without a file.
Result<uint64_t> DropDamage(RepairSession& session, const SegmentFindings& findings);

}  // namespace siltfs
