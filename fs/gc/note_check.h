// Drops the notes of segments that no longer hold secondary copies (secondary_copies.h). A noted
// segment holds none if the index leads to every chunk in it.
//
// A run compares a bounded number of noted segments with the index, and makes missing entries
// (entry_check.h). A mount after a crash compares segments with such new entries again. Then the
// run waits for all threads that may have found no entry for a chunk of these segments, commits,
// and compares again. This is necessary because a new copy that was in the pipeline at the first
// comparison may have taken over an entry. The run drops the note of each segment if in both
// comparisons the index leads to every chunk in it. But if the second comparison has to make any
// entry, the run drops no note. The next run continues with the segments after these.
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
    std::function<bool(SegmentId)> gone;  // true: the segment was removed, or is a victim
    EntryCheck::Pace pace;
    std::function<Status()> flush_index;  // makes durable the entries that exist at the call
  };
  NoteCheck(const Dependencies& dependencies, Options options);

  Status Run();

 private:
  // Returns the noted segments to compare in this run. They are sealed and have no known damage,
  // and the segment log has no writer for them any more.
  Result<std::vector<SegmentId>> NextSegments();
  // Drops each segment from `segments`, unless the index leads to every chunk in it. Returns the
  // number of index entries that had to be made.
  Result<uint64_t> KeepConfirmed(std::vector<SegmentId>& segments);
  // The new entries are durable only when the index is flushed, which may be long after a file
  // refers to one of the chunks.
  Status BeforeEntries(SegmentId segment);

  const Dependencies deps_;
  const Options options_;
  SegmentId next_ = 0;  // the next run begins here
};

}  // namespace siltfs
