// Resolves replacements of segments that were unfinished when the store was last open.
//
// Before SegmentStore::Replace gives a segment new content, metadata durably gets the *intent*: the
// record that describes the segment after the replacement. When the replacement is durable, one
// write makes the intent the segment's record and drops the intent. Between these two writes, the
// content that is in place shows which record is right. Every opening of a store resolves the
// intents: mounts for reading or writing, and checks.
//
// Thread-safety: any thread, while no other thread writes to the store.
#pragma once

#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/segment_record.h"
#include "fs/recovery/segment_recovery.h"

namespace siltfs {

// For each intent, sets the segment's record to the record that matches the content in place.
// Appends to `changes` the mutations that set this record in metadata and drop the intent. Writes
// nothing. Before the caller writes `changes`, RecoverSegments must make the contents in place
// durable, because a killed process may have left a replacement that is not durable. If a device
// failure prevents reading a segment, its record and intent stay.
void ResolveReplacements(SegmentStore& segments, const StoreIdentity& identity,
                         const SegmentRecords& intents, SegmentRecords& records,
                         std::vector<Mutation>& changes);

}  // namespace siltfs
