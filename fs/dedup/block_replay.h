// From the segments back to the index: the entries of all chunks that the index may lack, or, if it
// is empty, of all chunks.
//
// Only the head of each block is read, which has the names: some bytes for each chunk. Several
// segments are read at a time, ahead of the caller. Their blocks are passed on in the order of
// their sequences, as they were first put: if a chunk is stored twice, the later place counts. A
// crash in between leaves an index that says up to which block it is complete.
//
// Thread-safety: any thread, while no thread appends to the segments; `put` and `report` are called
// on the caller's thread. Memory: 36 bytes for each chunk of the segments with overlapping
// sequences, a handful, and of some that are read ahead. Errors: those of `put`. Damage is reported
// and skipped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/dedup/damage_list.h"
#include "fs/dedup/segment_recovery.h"
#include "fs/dedup/segment_set.h"
#include "fs/meta/damage_record.h"
#include "index/chunk_index.h"

namespace siltfs {

struct ReplayOptions {
  // Blocks up to this sequence are skipped.
  uint64_t durable_sequence = 0;
  // Called with the entries of some blocks, and a sequence that no earlier block has and that is
  // not above any of theirs; at the end without entries, with the last block's sequence
  // (ChunkIndex::Put).
  std::function<Status(std::span<const IndexEntry>, uint64_t sequence)> put;
  // Called with a sentence about anything that could not be read.
  ReportFinding report;
  // Called for unreadable chunks with name prefixes and tags in a footer, before anything else of
  // their segment is put: the index may have forgotten them, and no other bytes may take their
  // names (damage_list.h). A failure ends the replay. May be empty.
  std::function<Status(const DamagedBlock&)> on_damage = {};
  // Called for each segment that was read, after all its blocks are put; a failure ends the replay.
  // May be empty.
  std::function<Status(SegmentId)> segment_done = {};
  unsigned threads = 4;  // which mostly wait for the device
  // At least so many entries are passed on together: the index's own cost of a call is then
  // nothing.
  size_t batch_entries = 4096;
};

// Puts replayed entries into an index so that it leads to a copy outside the segments with
// secondary copies (secondary_copies.h) if there is one: an entry of a noted segment is put only if
// the index leads to no other copy.
class ReplayedEntries {
 public:
  // Index and damage must outlive it. `records`: the store's segments. An entry that leads beyond
  // them, or to a damaged chunk, leads to no copy.
  ReplayedEntries(ChunkIndex& index, const SegmentRecords& records,
                  const std::vector<SegmentId>& secondary, const DamageList& damage);

  Status Put(std::span<const IndexEntry> entries, uint64_t sequence);

 private:
  bool LeadsElsewhere(const std::optional<Location>& place, SegmentId segment) const;

  ChunkIndex& index_;
  std::unordered_map<SegmentId, uint64_t> chunks_in_;
  const SegmentSet secondary_;
  const DamageList& damage_;
};

// Replays the segments that have these records, and no others.
Status ReplayBlocks(Env& env, const StoreIdentity& identity, const SegmentRecords& records,
                    const ReplayOptions& options);

}  // namespace siltfs
