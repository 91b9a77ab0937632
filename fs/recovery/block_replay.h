// Replay: enters the chunks of segments into the index again. It enters all chunks that the index
// may lack; if the index is empty, these are all chunks.
//
// Only the head of each block is read. It holds the names of the block's chunks, and is small
// compared with the chunks. Several segments are read at a time, ahead of the caller. Their blocks
// are passed to `put` in the order of their sequences. Their entries were first put in the same
// order. So if a chunk is stored twice, the index leads to the later place. If a crash interrupts a
// replay, the next replay continues at the index's durable sequence.
//
// Thread-safety: any thread, while no thread appends to the segments; `put` and `report` are called
// on the caller's thread. Memory: 36 bytes for each chunk of the segments in memory. These are a
// few segments with overlapping sequences, and some that are read ahead. Errors: those of `put`,
// and kIoError if the place of the segments does not answer. Damage is reported and skipped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "fs/records/damage_record.h"
#include "fs/recovery/segment_recovery.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_set.h"
#include "index/chunk_index.h"

namespace siltfs {

struct ReplayOptions {
  // Blocks up to this sequence are skipped.
  uint64_t durable_sequence = 0;
  // Called with the entries of some blocks, and a sequence (ChunkIndex::Put). The sequence is above
  // the sequences of all blocks in earlier calls, and is the lowest sequence of the blocks in this
  // call. The last call has no entries, and the sequence of the last block.
  std::function<Status(std::span<const IndexEntry>, uint64_t sequence)> put;
  // Called with a sentence about each thing that could not be read.
  ReportFinding report;
  // Called with unreadable chunks if the footer of their segment has their name prefixes and tags.
  // The call comes before the entries of this segment are put. The index may lack these chunks, and
  // no other bytes may take their names (damage_list.h). A failure ends the replay. May be empty.
  std::function<Status(const DamagedBlock&)> on_damage = {};
  // Called for each segment that was read, after all its blocks are put; a failure ends the replay.
  // May be empty.
  std::function<Status(SegmentId)> segment_done = {};
  // Called if reads of a segment have had no answer (SegmentStore::UnansweredReads). True: read the
  // segment again. False, or if this is empty: the replay ends with kIoError. Called from several
  // threads.
  std::function<bool()> wait_for_answer = {};
  unsigned threads = 4;  // that read segments; they mostly wait for the device
  // Entries are collected until there are at least this many, and are then passed to `put`
  // together. This makes the index's cost for each call negligible.
  size_t batch_entries = 4096;
};

// Puts replayed entries into an index. If a chunk has a copy outside the noted segments
// (secondary_copies.h), the index must lead to this copy. So an entry of a noted segment is put
// only if the index leads to no other copy.
class ReplayedEntries {
 public:
  // `index` and `damage` must outlive the object. `records`: the store's segments. An index entry
  // that leads to a place outside them, or to a damaged chunk, counts as no copy.
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

// Replays the segments in `records`, and no others.
Status ReplayBlocks(SegmentStore& segments, const StoreIdentity& identity,
                    const SegmentRecords& records, const ReplayOptions& options);

}  // namespace siltfs
