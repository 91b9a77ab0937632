// Recompresses sealed data segments: rewrites them with larger blocks and at the store's own
// compression level (new chunks are compressed faster and less). Each segment is rewritten as a
// whole and under its id, so the index stays as it is (segment_rewrite.h).
//
// A replacement takes four steps, and each is durable before the next one begins. The new file is
// written beside the old one. The *intent* is written to metadata. The new file is renamed over the
// old one. The new record replaces the intent in metadata. After a crash, the file that is in place
// shows which record is right (segment_replacement.h). The segment can be read during all steps
// (segment_cache.h).
//
// A segment is recompressed only if it is sealed, metadata records it as sealed, and all index
// entries of its chunks are durable. The last condition is needed because a merged block gets the
// highest sequence of its source blocks. With these sequences, a replay would put entries in
// another order than the original one. Because of the condition, a replay after a crash need not
// put entries of a recompressed segment.
//
// Thread-safety: every call from any thread. One segment is rewritten at a time. Memory: a few
// blocks and zstd contexts while a segment is rewritten; about 100 bytes for each segment that
// awaits recompression. Errors: damage in a segment is reported, and the segment stays as it is.
// kNoSpace changes nothing and allows a retry. Device failures after the intent end all writing
// (SegmentLog::Fail).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fs/jobs/background_job.h"
#include "fs/jobs/store_activity.h"
#include "fs/meta/commit_port.h"
#include "fs/segments/committed_segments.h"
#include "fs/segments/segment_bases.h"
#include "fs/segments/segment_cache.h"
#include "fs/segments/segment_log.h"
#include "fs/segments/segment_tables.h"
#include "fs/segments/space_account.h"
#include "index/chunk_index.h"
#include "store/base/progress_meter.h"
#include "store/base/thread_annotations.h"
#include "store/segment/segment_rewrite.h"

namespace siltfs {

// About how many uncompressed bytes a block of a recompressed segment holds. Larger blocks compress
// better, but reading a single chunk from one costs more.
inline constexpr uint32_t kRecompressedBlockBytes = 512U << 10;

// The outcome for the segments that awaited recompression.
struct RecompressionOutcome {
  uint64_t segments = 0;           // rewritten
  uint64_t kept = 0;               // unchanged, because a rewrite saves nothing
  uint64_t left = 0;               // damaged, a victim of GC, or not yet durable in the index
  uint64_t bytes_before = 0;       // file sizes of the segments counted in `segments` and `kept`
  uint64_t bytes_after = 0;        // the file sizes of the same segments after the call
  uint64_t deltas = 0;             // chunks that became deltas
  uint64_t delta_saved_bytes = 0;  // PreparedRewrite::delta_saved_bytes
};

class Recompressor final : public CommittedSegments {
 public:
  // Dependencies. All must outlive it.
  struct Dependencies {
    Env& env;
    ChunkIndex& index;
    SegmentLog& log;
    SegmentCache& segments;
    const StoreActivity& activity;  // the background thread works only while the store is quiet
    SpaceAccount& account;
    CommitPort& metadata;
    SegmentBases& bases;
  };
  struct Options {
    std::string store;
    StoreUuid uuid;
    Compression compression;  // codec kNone: nothing is recompressed
    uint32_t block_plain_bytes = kRecompressedBlockBytes;
    uint64_t needed_bytes = 0;                       // that must be free on the disk
    std::function<void(const std::string&)> report;  // called with each damage; may be empty
    // If it returns true, the segment is skipped for now. May be empty.
    std::function<bool(SegmentId)> is_victim = {};
    // Returns true if the segment is known to be damaged. Such a segment is dropped until the next
    // mount. May be empty.
    std::function<bool(SegmentId)> is_damaged = {};
    // Chooses bases of deltas; null: no chunk becomes a delta. `base_source` reads the bases again
    // when a new file is read back. Both must outlive the recompressor. The chooser must not offer
    // a base that may be removed or become a delta (near_duplicates.h). It need not know
    // what SetAside does: a segment that becomes a victim while Choose runs is removed only after
    // the rewrite has ended and its bases are marked.
    BaseChooser* chooser = nullptr;
    BaseSource* base_source = nullptr;
    // The background thread reads this many uncompressed bytes of old and new files per second (0:
    // unlimited), and rests after each block.
    uint64_t bytes_per_second = 32u << 20;
    BackgroundJob::Wait wait = {};  // BackgroundJob::Options
  };
  Recompressor(const Dependencies& dependencies, Options options);
  // Calls Stop.
  ~Recompressor() override;

  // Adds a sealed segment after its record was committed. Segments that need no recompression are
  // not added.
  void Add(SegmentId segment, const SegmentRecord& record) override SILTFS_EXCLUDES(mutex_);
  // Keeps segments from being recompressed until they are added again. Waits until no segment is
  // being recompressed, also no other one: its deltas may get bases in these segments. Returns
  // those segments that still awaited recompression. Fails, and changes nothing, if owed metadata
  // (TakeOwed) cannot be written.
  Result<SegmentRecords> SetAside(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // Recompresses the segments that were added before the call. Leaves the segments that
  // RecompressionOutcome::left counts. Errors: kInterrupted after Stop; kNoSpace; kReadOnly after a
  // device failure in this call or earlier. Segments that were finished before kInterrupted or
  // kNoSpace stay recompressed.
  Result<RecompressionOutcome> Recompress();

  // Starts a thread that recompresses added segments whenever the store is quiet.
  void StartInBackground();

  // Ends the background thread and makes a running Recompress return soon. After Stop no segment is
  // recompressed.
  void Stop() { job_.Stop(); }
  // Makes the calls of Recompress that are running return kInterrupted soon.
  void Interrupt() { job_.Interrupt(); }
  bool running() const { return job_.running(); }
  WorkProgress progress() const { return progress_.Now(); }

  // As in RecompressionOutcome, of all segments since the store was opened.
  uint64_t deltas() const { return deltas_; }
  uint64_t delta_saved_bytes() const { return delta_saved_bytes_; }

  // Appends the owed metadata changes to `mutations`. A change is owed if it could not be written
  // because the disk was full.
  void TakeOwed(std::vector<Mutation>& mutations);

 private:
  using Pace = std::function<Status(uint64_t plain_bytes)>;
  struct Candidate {
    SegmentId id = kNoSegment;
    SegmentRecord record;
  };

  bool enabled() const { return options_.compression.codec != BlockCodecId::kNone; }
  bool HasCandidates() SILTFS_EXCLUDES(mutex_);
  size_t CountCandidates() SILTFS_EXCLUDES(mutex_);
  // The candidate with the highest id; kNoSegment if there is none.
  SegmentId LastCandidate() SILTFS_EXCLUDES(mutex_);
  // The first candidate above `id`; its id is kNoSegment if there is none.
  Candidate NextAfter(SegmentId id) SILTFS_EXCLUDES(mutex_);
  void Drop(SegmentId id) SILTFS_EXCLUDES(mutex_);
  SegmentRecords TakeCandidates(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // Recompresses the candidates one after another; `prepare` makes the new file.
  using Prepare = std::function<Result<PreparedRewrite>(SegmentId)>;
  Status Pass(BackgroundJob::Runner runner, const Prepare& prepare, RecompressionOutcome& outcome);
  Status RecompressOne(const Candidate& candidate, const Prepare& prepare,
                       RecompressionOutcome& outcome) SILTFS_REQUIRES(job_.run_mutex());
  Status Replace(const Candidate& candidate, const SegmentRecord& after)
      SILTFS_REQUIRES(job_.run_mutex());
  Status PayOwed() SILTFS_REQUIRES(job_.run_mutex());
  Status CheckSpace();
  bool IndexHas(const SegmentRecord& record);
  // Reports why a segment cannot be rewritten, and drops it until the next mount.
  void LeaveAlone(const Candidate& candidate, const Status& why, RecompressionOutcome& outcome);
  Result<PreparedRewrite> PrepareSegment(SegmentId id, const Pace& pace);
  // Returns OK and kNoSpace unchanged. For any other failure, fails the log and returns the status
  // of SegmentLog::Fail.
  Status Judge(Status failure);

  // Makes a pass on the background thread. Returns the pause before the next pass.
  std::chrono::nanoseconds PassInBackground();
  // Rests in proportion to the bytes read, and then waits until the store is quiet.
  Status PaceInBackground(uint64_t plain_bytes);

  const Dependencies deps_;
  const Options options_;
  BackgroundJob job_;
  ProgressMeter progress_;
  std::atomic<uint64_t> deltas_{0};
  std::atomic<uint64_t> delta_saved_bytes_{0};
  std::vector<Mutation> owed_ SILTFS_GUARDED_BY(job_.run_mutex());

  Mutex mutex_;  // locked after the mutexes of job_
  std::map<SegmentId, SegmentRecord> candidates_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
