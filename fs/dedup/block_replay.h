// From the segments back to the index: the entries of all chunks that the index may not have, or,
// where it holds nothing, of all there are.
//
// Of each block the head alone is read, which has the names: some bytes for each chunk. Several
// segments are read at a time, ahead of the caller, and their blocks are passed on in the order of
// their sequences, as they were put at first: where a chunk is stored twice the later place counts,
// and a crash in between leaves an index that says up to which block it is whole.
//
// Thread-safety: any thread, nobody appending to the segments; `put` and `report` are called on the
// caller's. Memory: 36 bytes for each chunk of the segments whose sequences overlap, as a handful
// do, and of some that are read ahead. Errors: those of `put`. Damage is reported and passed over.
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
  // Blocks up to this sequence are left out.
  uint64_t durable_sequence = 0;
  // Of some blocks, with a sequence that is none's before them and not above any of them; in the
  // end without entries, with the last block's sequence (ChunkIndex::Put).
  std::function<Status(std::span<const IndexEntry>, uint64_t sequence)> put;
  // Told of what could not be read, in a sentence.
  ReportFinding report;
  // Told of chunks that could not be read and whose beginnings of names and tags a footer has,
  // before anything else of their segment is put: the index may have forgotten them, and no other
  // bytes are to take their names (damage_list.h). A failure ends the replay. May be empty.
  std::function<Status(const DamagedBlock&)> on_damage = {};
  // Called for each segment that was read, whose blocks are all put; a failure ends the replay. May
  // be empty.
  std::function<Status(SegmentId)> segment_done = {};
  unsigned threads = 4;  // that wait for the device, most of the time
  // Passed on together, at least: what a call costs the index by itself is then nothing.
  size_t batch_entries = 4096;
};

// Puts replayed entries into an index so that it leads to a copy outside the segments with
// secondary copies (secondary_copies.h) where there is one: an entry of a noted segment is put only
// where the index leads to no other copy.
class ReplayedEntries {
 public:
  // Index and damage must outlive it. `records`: the store's segments. An entry that leads beyond
  // them, or to a chunk that is damaged, leads to no copy.
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

// Of the segments that have these records, and no others.
Status ReplayBlocks(Env& env, const StoreIdentity& identity, const SegmentRecords& records,
                    const ReplayOptions& options);

}  // namespace siltfs
