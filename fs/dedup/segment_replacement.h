// Resolves file replacements of segments that were under way when the store was last open.
//
// Before a new file is renamed over a segment's, metadata durably gets the record that the segment
// will have then, its *intent*. After the rename is durable, one write makes the intent the
// segment's record and drops it. Between the two, the file that is in place says which record is
// true. Every opening of a store resolves them: mounts for reading or writing, and checks.
//
// Thread-safety: any thread, while no other has the store open for writing.
#pragma once

#include <vector>

#include "fs/dedup/segment_recovery.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"

namespace siltfs {

// For each intent, makes the segment's record that of the file in place, and appends to `changes`
// the mutations by which metadata says so and drops the intent. Writes nothing: before `changes`
// are written, RecoverSegments must make durable which files are in place, as a killed process may
// have left that undone. A segment that cannot be read because the device fails keeps record and
// intent.
void ResolveReplacements(Env& env, const StoreIdentity& identity, const SegmentRecords& intents,
                         SegmentRecords& records, std::vector<Mutation>& changes);

}  // namespace siltfs
