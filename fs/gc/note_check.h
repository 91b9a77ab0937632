// Drops the notes of segments that no longer hold secondary copies (secondary_copies.h). A noted
// segment holds none if the index leads to every chunk in it.
//
// A run compares a bounded number of noted segments with the index, and makes missing entries
// (entry_check.h). Then it waits for all threads that may have found no entry for a chunk of these
// segments, commits, and compares again. This is necessary because a new copy that was in the
// pipeline at the first comparison may have taken over an entry. The run drops the note of a
// segment if in both comparisons the index leads to every chunk in it. It drops no note if the
// second comparison has to make an entry. The next run continues with the segments after these.
//
// Thread-safety: one call at a time. Memory: entry_check.h, and 8 bytes for each noted segment.
// Errors: those of entry_check.h, of `flush_index`, and of metadata. A failed run drops no note.
// Durability: the index's entries are durable before a note is dropped.
#pragma once

#include <functional>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/chunks/entry_check.h"
#include "fs/chunks/epoch_gate.h"
#include "fs/chunks/secondary_copies.h"
#include "fs/meta/commit_port.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_log.h"

namespace siltfs {

class NoteCheck {
 public:
  // All must outlive it.
  struct Dependencies {
    ChunkIndex& index;
    SegmentLog& log;
    SegmentCache& segments;
    ChunkReader& reader;
    BlockPipeline& pipeline;
    EpochGate& uses;
    const DamageList& damage;
    SecondaryCopies& secondary;
    CommitPort& metadata;
  };
  struct Options {
    std::function<bool(SegmentId)> gone;  // true: the segment is removed, or about to be
    EntryCheck::Pace pace;
    std::function<Status()> flush_index;  // makes all entries that exist now durable
  };
  NoteCheck(const Dependencies& dependencies, Options options);

  Status Run();

 private:
  // The noted segments to compare in this run: sealed, undamaged, and no longer written.
  Result<std::vector<SegmentId>> NextSegments();
  // Drops each segment from `segments`, unless the index leads to every chunk in it. Returns the
  // number of index entries that had to be made.
  Result<uint64_t> KeepConfirmed(std::vector<SegmentId>& segments);

  const Dependencies deps_;
  const Options options_;
  SegmentId next_ = 0;  // the next run begins here
};

}  // namespace siltfs
