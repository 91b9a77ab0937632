// Reclaims the space of chunks to which nothing refers. It works segment by segment, while the
// store is in use.
//
// A collection counts the live chunks of each segment, and picks segments with enough dead chunks
// (collection_candidates.h). It handles a few of these victims at a time (victim_collection.h):
//
//   1. It durably notes that the victims may come to hold secondary copies (secondary_copies.h).
//      From now on, when a chunk of a victim is written again, it is stored again.
//   2. It waits for all threads that may have found a duplicate in a victim before, and commits.
//   3. It marks exactly the chunks of the victims to which the metadata of this commit refers.
//   4. It copies the marked chunks into new segments (relocator.h), commits, and moves their index
//      entries.
//   5. It durably removes the victims' records from metadata, and notes there that their files are
//      to be removed.
//   6. It waits for all threads that may be reading the victims, removes the files, and drops the
//      note.
//
// Why nothing is lost: a reference that appears after step 2 leads to a chunk outside the victims,
// or is a copy of a reference that step 3 has seen. The chunks marked in step 3 are durable outside
// the victims before step 5. After a crash before step 5 the victims are still there, perhaps with
// copies of their chunks elsewhere. Of each two copies the next collection counts one as dead. A
// crash after step 5 leaves the note, and the next mount removes the files. The index never decides
// that a chunk is dead.
//
// Bases. A delta needs its base, so step 3 also marks each base that a segment with deltas needs
// (fs/segments/segment_bases.h), unless all chunks of this segment are dead. Step 4 inflates
// deltas, and copies a base unless it will stay whole elsewhere. Recompression may make deltas
// while a collection runs. No base is lost, for these reasons. A segment becomes a victim before
// SetAside is called, and SetAside waits for the end of a rewrite that runs (Recompressor). A
// rewrite that ends before has put its segment into SegmentBases, so step 3 sees its bases. A
// rewrite that begins later offers no base in a victim (NearDuplicates), and it offers
// only copies in segments in their final form, so a base never becomes a delta. Before a victim is
// removed, the bases of segments that got deltas since step 3 are compared with the dead chunks
// once more.
//
// Before the collection picks segments, it makes index entries for referenced chunks that have none
// (reference_restorer.h). At its end it drops the notes of segments that no longer hold secondary
// copies (note_check.h).
//
// Thread-safety: every call from any thread; one collection at a time. Memory: that of mark.h and
// relocator.h, and some 16 bytes for each chunk of the victims handled together
// (kMostChunksAtOnce). Errors: a damaged segment is reported and left alone, unless all live chunks
// of its damaged blocks have undamaged copies elsewhere. Damage in recipes ends the collection,
// because the references are then unknown. kNoSpace if copies do not fit.
#pragma once

#include <chrono>
#include <vector>

#include "fs/gc/collection_candidates.h"
#include "fs/gc/collection_pace.h"
#include "fs/gc/collector_parts.h"
#include "fs/gc/garbage_outcome.h"
#include "fs/gc/note_check.h"
#include "fs/jobs/background_job.h"

namespace siltfs {

class GarbageCollector {
 public:
  GarbageCollector(const CollectorParts& parts, CollectorOptions options);
  ~GarbageCollector();  // stops

  // Collects until no segment is worth collecting. kInterrupted after Stop.
  Result<GarbageOutcome> Collect();
  // Estimates the outcome of Collect, changing nothing.
  Result<GarbageOutcome> Estimate();

  // Starts a thread that collects whenever SpaceAccount::NoteReleased has counted enough bytes
  // since the last collection.
  void StartInBackground();
  // Interrupts a running collection and ends the thread. No collection begins afterwards.
  void Stop() { job_.Stop(); }
  // Makes the calls of Collect and Estimate that are running return kInterrupted soon.
  void Interrupt() { job_.Interrupt(); }
  bool running() const { return job_.running(); }
  WorkProgress progress() const { return pace_.progress().Now(); }

 private:
  Result<CollectionCandidates> Count(GarbageOutcome& outcome) SILTFS_REQUIRES(job_.run_mutex());
  CollectionReason Reason() const;
  // Makes index entries for the referenced chunks that had none in the last count.
  Status RestoreReferences() SILTFS_REQUIRES(job_.run_mutex());
  // If most index entries lead into removed segments, rewrites the index without these entries.
  Status DropStaleEntries();
  // Makes durable all index entries that exist when it is called. kInterrupted if the index has not
  // made all of them durable.
  Status FlushIndex();
  Status CollectAll(GarbageOutcome& outcome) SILTFS_REQUIRES(job_.run_mutex());
  Status CollectSome(const CollectionCandidates& some, GarbageOutcome& outcome)
      SILTFS_REQUIRES(job_.run_mutex());
  bool IsFull() const;  // new data is rejected for lack of space
  // Makes a collection if enough bytes were released. Returns the pause before the next attempt.
  std::chrono::nanoseconds CollectInBackground();

  const CollectorParts deps_;
  const CollectorOptions options_;
  BackgroundJob job_;
  CollectionPace pace_;
  // not_indexed_: the references without an index entry, from LiveCounts of the last count. lost_:
  // these references when RestoreReferences last could not make an entry for any of them. While the
  // two are equal, RestoreReferences does not try again.
  std::vector<uint64_t> not_indexed_ SILTFS_GUARDED_BY(job_.run_mutex());
  std::vector<uint64_t> lost_ SILTFS_GUARDED_BY(job_.run_mutex());
  NoteCheck note_check_ SILTFS_GUARDED_BY(job_.run_mutex());
  // Approximate size, in bytes, of the segments that the last background collection examined. Used
  // by the background thread alone.
  uint64_t stored_ = 0;
};

}  // namespace siltfs
