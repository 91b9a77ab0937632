// Reads the tables of metadata that are keyed by segment. Results have ascending ids. Errors:
// kCorruption for a malformed key or record.
#pragma once

#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/damage_record.h"
#include "fs/records/segment_record.h"

namespace siltfs {

// The records of all segments.
Result<SegmentRecords> ReadSegmentRecords(const KvSnapshot& metadata);
// The intents: records that segments get when their files are replaced (segment_replacement.h).
Result<SegmentRecords> ReadReplacements(const KvSnapshot& metadata);
// Segments that are to be removed: nothing refers to them any more.
Result<std::vector<SegmentId>> ReadRemovedSegments(const KvSnapshot& metadata);
// Segments that may hold secondary copies (secondary_copies.h).
Result<std::vector<SegmentId>> ReadSecondary(const KvSnapshot& metadata);
// The segments of ReadSecondary that a mount after a crash compares with the index: victims, and
// segments for whose chunks GC has made entries.
Result<std::vector<SegmentId>> ReadVictims(const KvSnapshot& metadata);
// All damage that is known.
Result<std::vector<DamagedBlock>> ReadDamage(const KvSnapshot& metadata);

}  // namespace siltfs
