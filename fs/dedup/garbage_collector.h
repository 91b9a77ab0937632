// Reclaims the space of chunks that nothing refers to: online, segment by segment, with the store
// in use.
//
// A collection counts which chunks of each segment committed metadata refers to (mark.h) and picks
// segments with enough dead chunks. It handles a few of these victims at a time:
//
//   1. It durably notes that the victims may come to hold secondary copies (secondary_copies.h).
//      From now on a chunk that would be a duplicate of a chunk in a victim is stored again.
//   2. It waits for all threads that may have found such a duplicate before, and commits.
//   3. It marks exactly the chunks of the victims that this commit refers to.
//   4. It copies the marked chunks into new segments (relocator.h), commits, and moves their index
//      entries.
//   5. It durably removes the victims' records from metadata, and notes there that their files are
//      to be removed.
//   6. It waits for all threads that may be reading the victims, removes the files, and drops the
//      note.
//
// Why nothing is lost: a reference that appears after step 2 leads to a chunk outside the victims,
// or is a copy of a reference that step 3 has seen. The chunks marked in step 3 are durable outside
// the victims before step 5. A crash before step 5 leaves everything as it was, and copies that the
// next collection finds dead. A crash after step 5 leaves the note, and the next mount removes the
// files. The index never decides that a chunk is dead.
//
// Before the collection picks segments, it makes index entries for references that the index does
// not know (reference_restorer.h). At the end it drops the notes of segments that need none any
// more (note_check.h).
//
// Thread-safety: every call from any thread; one collection at a time. Memory: that of mark.h and
// relocator.h, and some 16 bytes for each chunk of the victims handled together
// (kMostChunksAtOnce). Errors: a damaged segment is reported and left alone, unless all live chunks
// of its damaged blocks have undamaged copies elsewhere. Damage in recipes ends the collection,
// because the references are then unknown. kNoSpace if copies do not fit.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
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
#include "fs/dedup/note_check.h"
#include "fs/dedup/recompressor.h"
#include "fs/dedup/relocator.h"
#include "fs/dedup/secondary_copies.h"
#include "fs/dedup/segment_tables.h"
#include "fs/meta/garbage_record.h"
#include "fs/meta/recipe_node.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// The outcome of a collection or of an estimate. Units: bytes of segment files, counts.
struct GarbageOutcome {
  uint64_t segments = 0;  // examined
  uint64_t segments_removed = 0;
  uint64_t segments_left = 0;  // left alone because of damage
  uint64_t bytes_removed = 0;  // of the segments removed
  uint64_t bytes_copied = 0;   // of live chunks, as appended to new segments
  uint64_t dead_bytes = 0;     // still stored, in segments with few dead chunks
  uint64_t dead_chunks = 0;    // before the collection
  uint64_t live_chunks = 0;
};

class GarbageCollector {
 public:
  // Dependencies. All must outlive it.
  struct Dependencies {
    Env& env;
    ChunkIndex& index;
    SegmentLog& log;
    SegmentCache& segments;
    FooterCache& windows;
    ChunkReader& reader;
    BlockPipeline& pipeline;
    Recompressor& recompressor;
    const BlockCodec& codec;
    NodeStore& nodes;
    EpochGate& uses;      // entered by threads with chunk names that metadata may not have
    SegmentSet& victims;  // no new chunk is a duplicate of a chunk in them
    DamageList& damage;
    const GoneSegments& gone;
    SecondaryCopies& secondary;
  };
  struct Options {
    std::string store;
    Compression compression;
    uint32_t block_plain_bytes = kRecompressedBlockBytes;
    uint32_t segment_bytes = kMaxSegmentTargetSize;
    std::string spill_directory;
    GarbageRecord known;  // state when the store was opened
    // Commits everything accepted so far, including all chunks put so far.
    std::function<Status()> commit;
    std::function<std::shared_ptr<const KvSnapshot>()> snapshot;  // of the last commit
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // called with damage; may be empty
    std::function<uint64_t()> reserve_bytes;         // copies may use it; may be empty
    // Disk space, in bytes, that copying leaves to metadata and the index, which must record the
    // copies. If the disk has less room than this, copying leaves less (kLeastRoomForOthers).
    uint64_t room_for_others = 0;
    std::function<bool()> is_full;  // new data is rejected for lack of space; may be empty
    // At most this many bytes are read and written per second in the background (0: unlimited).
    uint64_t bytes_per_second = 32u << 20;
    std::chrono::nanoseconds poll{std::chrono::seconds(5)};
  };
  GarbageCollector(const Dependencies& dependencies, Options options);
  ~GarbageCollector();  // stops

  // Collects until no segment is worth collecting. kInterrupted after Stop.
  Result<GarbageOutcome> Collect();
  // Estimates the outcome of Collect, changing nothing.
  Result<GarbageOutcome> Estimate();

  // Starts a thread that collects whenever NoteReleased has counted enough bytes since the last
  // collection.
  void StartInBackground();
  // Counts bytes of file content that were removed or replaced; `bytes` may be approximate.
  void NoteReleased(uint64_t bytes) { released_ += bytes; }
  // Ends the thread and a running collection, soon; no other begins.
  void Stop();

  struct Totals {
    // Of segments removed since the store was opened.
    uint64_t removed_bytes = 0;
    uint64_t removed_not_recompressed_bytes = 0;
    uint64_t removed_chunks = 0;
    uint64_t removed_plain_bytes = 0;
  };
  Totals totals() const SILTFS_EXCLUDES(mutex_);
  // The state that a commit records for the next mount.
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
  struct Victim {
    Candidate candidate;
    SegmentFooter footer;  // without the chunks
  };

  // The background collection yields to callers of Collect and Estimate.
  void CountCallers(int difference) SILTFS_EXCLUDES(mutex_);
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  MarkPace PaceOfMark();
  Result<Candidates> Count(GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  // Makes the index lead to the chunks of references that the last count did not find in it.
  Status RestoreReferences() SILTFS_REQUIRES(run_mutex_);
  // If most index entries lead into removed segments, rewrites the index without these entries.
  Status DropStaleEntries();
  // Makes all entries made so far durable in the index. kInterrupted if it cannot be done now.
  Status FlushIndex();
  Candidates WorthCollecting(const Candidates& all) const;
  // Returns the first candidates, as many as are handled together.
  static Candidates FirstOf(const Candidates& worth);
  Status CollectAll(GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CollectSome(const Candidates& some, GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CollectVictims(const Candidates& some, GarbageOutcome& outcome)
      SILTFS_REQUIRES(run_mutex_);
  Result<SegmentFooter> ReadFooter(const Candidate& candidate);
  // Appends the candidate to `copied` if all its live chunks could be copied.
  Status CopyLive(const Victim& victim, const SegmentMark& mark, const LostChunks& lost,
                  Relocator& relocator, Candidates& copied, GarbageOutcome& outcome)
      SILTFS_REQUIRES(run_mutex_);
  // Makes copied chunks, and chunks found elsewhere, durable. Then moves the entries of the copied
  // chunks, and makes these entries durable.
  Status MoveEntries(Relocator& relocator);
  Status Remove(const Candidates& some, GarbageOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status CheckSpace(uint64_t bytes);  // fails if so much cannot be copied
  void LeaveAlone(const Candidate& candidate, const Status& why, GarbageOutcome& outcome);
  void CountRemoved(const Candidate& candidate) SILTFS_EXCLUDES(mutex_);
  bool Gone(SegmentId id) const;
  void Run(const std::function<void()>& work) const;

  void Work();
  Status Pace(uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  // Rests, in the background. While the store is in use, rests longer, or not at all if the disk is
  // nearly full.
  void Rest(std::chrono::nanoseconds pause) SILTFS_EXCLUDES(mutex_);
  bool IsNearlyFull() const;
  bool IsFull() const;

  const Dependencies deps_;
  const Options options_;

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held during a collection
  std::atomic<bool> background_{false};             // the thread runs the current collection
  // References without an index entry, as in LiveCounts of the last count; lost_: those that could
  // not be restored.
  std::vector<uint64_t> not_indexed_ SILTFS_GUARDED_BY(run_mutex_);
  std::vector<uint64_t> lost_ SILTFS_GUARDED_BY(run_mutex_);
  NoteCheck note_check_ SILTFS_GUARDED_BY(run_mutex_);

  mutable Mutex mutex_;
  CondVar wakes_;
  Totals totals_ SILTFS_GUARDED_BY(mutex_);
  GarbageRecord dead_ SILTFS_GUARDED_BY(mutex_);      // without released_bytes
  std::atomic<uint64_t> released_;                    // never decreases
  uint64_t collected_ SILTFS_GUARDED_BY(mutex_) = 0;  // value of released_ at the last collection
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;         // of Collect and Estimate
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
