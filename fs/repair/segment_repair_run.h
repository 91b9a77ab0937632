// Segments whose header, footer or record is damaged, and, if damage is to go, those with damaged
// blocks: the file written anew (store/segment/segment_repair.h), and the record with it.
//
// Between the file's rename and the record stands an intent, as where a segment is recompressed
// (fs/dedup/segment_replacement.h): whatever interrupts it, the file in place says which is true.
//
// Not thread-safe. Errors: Env's, and the key-value store's. A segment of which nothing can be
// saved is left as it is.
#pragma once

#include <map>
#include <set>
#include <string>

#include "fs/repair/repair_session.h"
#include "store/base/result.h"

namespace siltfs {

// By segment, what was found.
using SegmentFindings = std::map<SegmentId, std::set<std::string>>;

// Writes headers, footers and records anew. How many segments were changed; where their ends were
// cut off in the footer alone, that is no longer among the findings.
Result<uint64_t> RepairSegments(RepairSession& session, SegmentFindings& findings);

// Takes damaged chunks out of segments, which nothing may refer to any more, and segments without
// any whole block, or without a file, out of metadata.
Result<uint64_t> DropDamage(RepairSession& session, const SegmentFindings& findings);

}  // namespace siltfs
