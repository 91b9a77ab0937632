// Gives back the space of chunks that nothing refers to: online, segment by segment, with the store
// in use.
//
// A collection counts which chunks of each segment committed metadata refers to (mark.h), picks
// segments of which enough is dead, and for some of them at a time:
//
//   1. notes durably that they may come to hold secondary copies (secondary_copies.h), and condemns
//      them: what would be a duplicate of a chunk in them is from now on stored again;
//   2. waits until all who may have taken one for a duplicate before are done, and commits;
//   3. marks exactly what that commit refers to in them;
//   4. copies that into new segments (relocator.h), commits, and moves the index's entries;
//   5. durably takes them out of metadata, and notes there that they are to be removed;
//   6. waits until all who may be reading them are done, removes the files, and forgets the note.
//
// Why nothing is lost: a reference that appears after 2 is to a chunk elsewhere, or is a copy of
// one that 3 has seen; what 3 has seen is durable elsewhere before 5. A crash before 5 leaves all
// as it was, and copies that the next collection finds dead; one after it leaves a note, by which
// the next mount removes the files. The index is never believed to say that a chunk is dead.
//
// In the end it compares noted segments with the index, and drops the notes of those to which the
// index leads for every chunk. References that the index does not know are restored before segments
// are picked (reference_restorer.h).
//
// Thread-safety: every call from any thread; one collection at a time. Memory: mark.h, some 16
// bytes a chunk of the segments that are condemned together (kMostChunksAtOnce), and relocator.h.
// Errors: damage in a segment is reported, and the segment left alone, unless all that lives in
// damaged blocks lies whole elsewhere; damage in recipes ends the
// collection, as nobody knows then what is referred to. kNoSpace where copies do not fit.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fs/dedup/block_pipeline.h"
#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/damage_list.h"
#include "fs/dedup/epoch_gate.h"
#include "fs/dedup/gone_segments.h"
#include "fs/dedup/lost_chunks.h"
#include "fs/dedup/mark.h"
#include "fs/dedup/recompressor.h"
#include "fs/dedup/relocator.h"
#include "fs/dedup/secondary_copies.h"
#include "fs/dedup/segment_tables.h"
#include "fs/meta/garbage_record.h"
#include "fs/meta/recipe_node.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// What a collection did, or, where it was only asked for, what it would do. Units: bytes of segment
// files, counts.
struct GarbageOutcome {
  uint64_t segments = 0;  // all that were looked at
  uint64_t segments_removed = 0;
  uint64_t segments_left = 0;  // damaged
  uint64_t bytes_removed = 0;  // of the segments removed
  uint64_t bytes_copied = 0;   // of the segments that what lived in them was copied to
  uint64_t dead_bytes = 0;     // that are still there, in segments with little of them
  uint64_t dead_chunks = 0;    // before
  uint64_t live_chunks = 0;
};

class GarbageCollector {
 public:
  // What it works on. All must outlive it.
  struct Store {
    Env& env;
    ChunkIndex& index;
    SegmentLog& log;
    SegmentCache& segments;
    FooterWindows& windows;
    ChunkReader& reader;
    BlockPipeline& pipeline;
    Recompressor& recompressor;
    const BlockCodec& codec;
    NodeStore& nodes;
    EpochGate& uses;        // whoever holds names of chunks that metadata may not have is inside
    SegmentSet& condemned;  // a chunk in one of these is no duplicate
    DamageList& damage;
    const GoneSegments& gone;
    SecondaryCopies& secondary;
  };
  struct Options {
    std::string store;
    Compression compression;
    uint32_t block_plain_bytes = kSettledBlockPlainBytes;
    uint32_t segment_bytes = kMaxSegmentTargetSize;
    std::string spill_directory;
    GarbageRecord known;  // when the store was opened
    // Commits all that was accepted so far, with all chunks put so far.
    std::function<Status()> commit;
    std::function<std::shared_ptr<const KvSnapshot>()> snapshot;  // of the last commit
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // told of damage; may be empty
    std::function<uint64_t()> reserve_bytes;         // that copies may draw on; may be empty
    // What copying leaves on the disk, if there is as much, for metadata and the index, which must
    // be told of it.
    uint64_t room_for_others = 0;
    std::function<bool()> is_full;  // nothing new is accepted for want of space; may be empty
    // In the background: no more than this is read and written in a second (0: as much as it can).
    uint64_t bytes_per_second = 32u << 20;
    std::chrono::nanoseconds poll{std::chrono::seconds(5)};
  };
  GarbageCollector(const Store& store, Options options);
  ~GarbageCollector();  // stops

  // Collects until nothing is left that is worth it. kInterrupted after Stop.
  Result<GarbageOutcome> Collect();
  // What Collect would find, changing nothing.
  Result<GarbageOutcome> Estimate();

  // From now on a thread collects whenever `released` (bytes of files' content that was removed or
  // replaced since the store was opened; never decreases) has grown enough since the last time.
  void StartInBackground();
  // So much of files' content, about, was removed or replaced.
  void NoteReleased(uint64_t bytes) { released_ += bytes; }
  // Ends the thread, and a collection under way, soon; no other begins.
  void Stop();

  struct Totals {
    // Of segments removed since the store was opened.
    uint64_t removed_bytes = 0;
    uint64_t removed_unsettled_bytes = 0;
    uint64_t removed_chunks = 0;
    uint64_t removed_plain_bytes = 0;
  };
  Totals totals() const SILTFS_EXCLUDES(mutex_);
  // For the next one to open the store.
  GarbageRecord known() const SILTFS_EXCLUDES(mutex_);

 private:
  // A sealed segment, as of the last count.
  struct Candidate {
    SegmentId id = kNoSegment;
    SegmentRecord record;
    uint64_t live = 0;  // chunks

    uint64_t dead() const { return record.chunks - live; }
    uint64_t dead_bytes() const { return record.length * dead() / record.chunks; }
  };
  using Candidates = std::vector<Candidate>;
  struct Condemned {
    Candidate candidate;
    SegmentFooter footer;  // without the chunks
  };

  // The background makes way for who asks.
  void CountCallers(int difference) SILTFS_EXCLUDES(mutex_);
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  MarkPace PaceOfMark();
  Result<Candidates> Count(GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  // Has the index lead to the chunks of references that the last count did not find there.
  Status RestoreReferences() SILTFS_REQUIRES(run_mutex_);
  // Drops the notes of segments to which the index leads for every chunk.
  Status CheckNoted() SILTFS_REQUIRES(run_mutex_);
  // Leaves of the segments those to which the index leads for every chunk; adds how many entries had
  // to be made.
  Status KeepConfirmed(std::vector<SegmentId>& segments, uint64_t& made);
  // Has the index rewritten without the entries of removed segments, if most of it is those.
  Status DropStaleEntries();
  // All entries made so far: durable in the index. kInterrupted where it cannot be now.
  Status FlushIndex();
  Candidates WorthCollecting(const Candidates& all) const;
  // As many as are condemned together.
  static Candidates FirstOf(const Candidates& worth);
  Status CollectAll(GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CollectSome(const Candidates& some, GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CollectCondemned(const Candidates& some, GarbageOutcome& outcome)
      SILTFS_REQUIRES(run_mutex_);
  Result<SegmentFooter> ReadFooter(const Candidate& candidate);
  // Appends to `copied` what could be copied as a whole.
  Status CopyLive(const Condemned& condemned, const SegmentMark& mark, const LostChunks& lost,
                  Relocator& relocator, Candidates& copied, GarbageOutcome& outcome)
      SILTFS_REQUIRES(run_mutex_);
  // All that was copied: durable, and where the index leads, durably. What was found elsewhere:
  // durable.
  Status MoveEntries(Relocator& relocator);
  Status Remove(const Candidates& some, GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CheckSpace(uint64_t bytes);  // whether there is room for so much to be copied
  void LeaveAlone(const Candidate& candidate, const Status& why, GarbageOutcome& outcome);
  void CountRemoved(const Candidate& candidate) SILTFS_EXCLUDES(mutex_);
  bool Gone(SegmentId id) const;
  void Run(const std::function<void()>& work) const;

  void Work();
  Status Pace(uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  // In the background; longer while the store is in use, unless the disk is nearly full.
  void Rest(std::chrono::nanoseconds pause) SILTFS_EXCLUDES(mutex_);
  bool IsNearlyFull() const;
  bool IsFull() const;

  const Store store_;
  const Options options_;

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held during a collection
  std::atomic<bool> background_{false};             // the collection is the thread's
  // By the last count (LiveCounts), and those of them that could not be restored.
  std::vector<uint64_t> not_indexed_ SILTFS_GUARDED_BY(run_mutex_);
  std::vector<uint64_t> lost_ SILTFS_GUARDED_BY(run_mutex_);
  SegmentId next_checked_ SILTFS_GUARDED_BY(run_mutex_) = 0;  // by CheckNoted

  mutable Mutex mutex_;
  CondVar wakes_;
  Totals totals_ SILTFS_GUARDED_BY(mutex_);
  GarbageRecord dead_ SILTFS_GUARDED_BY(mutex_);      // but for released_bytes
  std::atomic<uint64_t> released_;                    // never decreases
  uint64_t collected_ SILTFS_GUARDED_BY(mutex_) = 0;  // of these
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;         // of Collect and Estimate
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
