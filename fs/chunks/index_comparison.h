// Compares segments with the index when a store is opened (secondary_copies.h says why).
//
// Thread-safety: call before any Put, on a writable store. Memory: entry_check.h. Errors: those of
// the index, the pipeline and metadata. Durability: entries and notes are durable on return.
#pragma once

#include <vector>

#include "fs/chunks/chunk_parts.h"

namespace siltfs {

// For a store in which no segment was ever noted for secondary copies. Compares all segments with
// the index, and makes entries for chunks that the index does not know. Notes each segment that is
// damaged or has a chunk to which the index does not lead. In a store of more than a million chunks
// it notes all segments instead, and garbage collections compare them with the index later.
Status BeginNotes(ChunkParts& parts, const SegmentRecords& records);

// `victims`: segments whose notes say that a mount after a crash compares them. The index may lead
// nowhere for their chunks. So if `crashed`, CompareVictims makes the index lead to these chunks.
// In any case it changes the notes of the segments to plain notes.
Status CompareVictims(ChunkParts& parts, const std::vector<SegmentId>& victims, bool crashed);

}  // namespace siltfs
