// Resolves replacements of segments that were unfinished when the store was last open.
//
// Before SegmentStore::Replace gives a segment a new content, metadata durably gets the *intent*:
// the record that the segment gets by the replacement. After the durable replacement, one write
// makes the intent the segment's record and drops the intent. Between these two writes, the content
// that is in place shows which record is right. Every opening of a store resolves the intents:
// mounts for reading or writing, and checks.
//
// Thread-safety: any thread, while no other has the store open for writing.
#pragma once

#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"

namespace siltfs {

// For each intent, sets the segment's record to that of the content in place. Appends to `changes`
// the mutations that set this record in metadata and drop the intent. Writes nothing. Before the
// caller writes `changes`, RecoverSegments must make durable which contents are in place: a killed
// process may have left a replacement not durable. If a device failure prevents reading a segment,
// its record and intent stay.
void ResolveReplacements(SegmentStore& segments, const StoreIdentity& identity,
                         const SegmentRecords& intents, SegmentRecords& records,
                         std::vector<Mutation>& changes);

}  // namespace siltfs
