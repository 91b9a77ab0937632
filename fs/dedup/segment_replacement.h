// What became of segments whose files were being replaced when the store was last open.
//
// Before a new file is renamed over a segment's, metadata durably gets the record that the segment
// will have then, its *intent*; after the rename was made durable, one write makes that the
// segment's record and drops the intent. Between the two the file that is in place says which of
// the records is true. All who open a store ask here: mounts for reading or writing, and checks.
//
// Thread-safety: any thread, nobody else having the store open for writing.
#pragma once

#include <vector>

#include "fs/dedup/segment_recovery.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/segment_record.h"

namespace siltfs {

// Makes each record that an intent is about the one of the file that is in place, and appends to
// `changes` what makes metadata say so and forget the intents. Writes nothing: before `changes` are
// written, RecoverSegments must make durable which files are in place, as a process that died may
// have left that undone. A segment that
// cannot be read because the device fails keeps record and intent.
void ResolveReplacements(Env& env, const StoreIdentity& identity, const SegmentRecords& intents,
                         SegmentRecords& records, std::vector<Mutation>& changes);

}  // namespace siltfs
