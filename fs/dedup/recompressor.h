// Recompresses sealed data segments: rewrites them with larger blocks and at the store's own
// compression level (new chunks are compressed faster and less). Each segment is rewritten as a
// whole and under its id, so the index stays as it is (segment_rewrite.h).
//
// A replacement takes four steps, and each is durable before the next one begins. The new file is
// written beside the old one. The *intent* is written to metadata. The new file is renamed over the
// old one. The new record replaces the intent in metadata. After a crash, the file that is in place
// shows which record is right (segment_replacement.h). Readers continue meanwhile
// (segment_cache.h).
//
// A segment is recompressed only if it is sealed, metadata records it as sealed, and the index has
// its entries durably. Merged blocks get raised sequences, but because of this condition a replay
// never has to put entries of such a segment.
//
// Thread-safety: every call from any thread. One segment is rewritten at a time. Memory: a few
// blocks and zstd contexts while a segment is rewritten; 64 bytes for each segment that awaits
// recompression. Errors: damage in a segment is reported, and the segment left alone. kNoSpace
// changes nothing and allows a retry. Device failures after the intent end all writing
// (SegmentLog::Fail).
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fs/dedup/segment_cache.h"
#include "fs/dedup/segment_log.h"
#include "fs/dedup/segment_tables.h"
#include "fs/meta/kv_store.h"
#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"
#include "store/segment/segment_rewrite.h"

namespace siltfs {

// About how many uncompressed bytes a block of a recompressed segment holds. Larger blocks compress
// better, but reading a single chunk from one costs more.
inline constexpr uint32_t kRecompressedBlockBytes = 512U << 10;

// The outcome for the segments that awaited recompression.
struct RecompressionOutcome {
  uint64_t segments = 0;      // rewritten
  uint64_t kept = 0;          // unchanged, because a rewrite saves nothing
  uint64_t left = 0;          // damaged, or not ready yet
  uint64_t bytes_before = 0;  // file sizes of segments rewritten and kept
  uint64_t bytes_after = 0;
};

class Recompressor {
 public:
  struct Options {
    std::string store;
    StoreUuid uuid;
    Compression compression;  // codec kNone: nothing is recompressed
    uint32_t block_plain_bytes = kRecompressedBlockBytes;
    uint64_t needed_bytes = 0;  // that must be free on the disk
    // Writes metadata durably, outside of commits.
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // called with damage; may be empty
    // True: the segment is skipped for now. May be empty.
    std::function<bool(SegmentId)> is_victim = {};
    // True: the segment is known to be damaged, and dropped until the next mount. May be empty.
    std::function<bool(SegmentId)> is_damaged = {};
    // For the background thread. `quiet`: it works only if no chunk was put or read for this time.
    // `bytes_per_second`: it reads this many uncompressed bytes of old and new files per second (0:
    // unlimited), and rests after each block.
    std::chrono::nanoseconds quiet{std::chrono::seconds(5)};
    uint64_t bytes_per_second = 32u << 20;
    // How the thread waits: for `at_most`, or until `wakes` is notified. Called with `mutex` held,
    // as a condition variable requires. Empty: it waits by the real clock. Tests wait by Env's
    // clock alone.
    std::function<void(CondVar& wakes, Mutex& mutex, std::chrono::nanoseconds at_most)> wait = {};
  };
  // All must outlive it.
  Recompressor(Env& env, ChunkIndex& index, SegmentLog& log, SegmentCache& segments,
               Options options);
  // Stops.
  ~Recompressor();

  // Adds a sealed segment after its record was committed.
  void Add(SegmentId segment, const SegmentRecord& record);
  // Keeps segments from being recompressed until they are added again. Waits until none of them is
  // being recompressed. Returns those segments that still awaited recompression. Fails, and changes
  // nothing, if owed metadata (TakeOwed) cannot be written.
  Result<SegmentRecords> SetAside(std::span<const SegmentId> segments)
      SILTFS_EXCLUDES(run_mutex_, mutex_);
  // Whether no chunk was put or read in the last Options::quiet.
  bool IsQuiet() const;
  // Call when the store is used: background work then yields.
  void NoteUse() { last_use_ = env_.MonotonicNanoseconds(); }

  // Recompresses all segments that were added before the call and are ready. Errors: kInterrupted
  // after Stop; kNoSpace; kReadOnly after a device failure in this call or earlier. Segments
  // finished before kInterrupted or kNoSpace stay recompressed.
  Result<RecompressionOutcome> Recompress();

  // Starts a thread that recompresses the segments that are ready, whenever IsQuiet().
  void StartInBackground();

  // Ends the thread and a running Recompress, soon; no other begins.
  void Stop();

  // Appends owed metadata changes: those that could not be written because the disk was full.
  void TakeOwed(std::vector<Mutation>& mutations) SILTFS_EXCLUDES(run_mutex_);

  // Since construction: by how much files shrank, and the former size of the recompressed files.
  uint64_t saved_bytes() const { return saved_bytes_; }
  uint64_t recompressed_bytes() const { return recompressed_bytes_; }

 private:
  using Pace = std::function<Status(uint64_t plain_bytes)>;
  struct Candidate {
    SegmentId id = kNoSegment;
    SegmentRecord record;
  };

  bool enabled() const { return options_.compression.codec != BlockCodecId::kNone; }
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  // The candidate with the highest id; kNoSegment if there is none.
  SegmentId LastCandidate() SILTFS_EXCLUDES(mutex_);
  // The first candidate above `id`; its id is kNoSegment if there is none.
  Candidate NextAfter(SegmentId id) SILTFS_EXCLUDES(mutex_);
  void Drop(SegmentId id) SILTFS_EXCLUDES(mutex_);
  SegmentRecords TakeCandidates(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // Recompresses the candidates one after another; `prepare` makes the new file.
  using Prepare = std::function<Result<PreparedRewrite>(SegmentId)>;
  Status Pass(const Prepare& prepare, RecompressionOutcome& outcome);
  Status RecompressOne(const Candidate& candidate, const Prepare& prepare,
                       RecompressionOutcome& outcome) SILTFS_REQUIRES(run_mutex_);
  Status Replace(const Candidate& candidate, const SegmentRecord& after)
      SILTFS_REQUIRES(run_mutex_);
  Status PayOwed() SILTFS_REQUIRES(run_mutex_);
  Status CheckSpace();
  bool IndexHas(const SegmentRecord& record);
  // Reports why a segment cannot be rewritten, and drops it until the next mount.
  void LeaveAlone(const Candidate& candidate, const Status& why, RecompressionOutcome& outcome);
  Result<PreparedRewrite> PrepareSegment(SegmentId id, const Pace& pace);
  // Returns `failure`; fails the log first, unless `failure` is OK or kNoSpace.
  Status Judge(Status failure);

  void Work();
  // Whether the background thread must stop its current work, so that callers of Recompress or
  // SetAside do not wait for its pauses.
  bool Unwanted() const SILTFS_REQUIRES(mutex_) {
    return stopping_ || callers_ > 0 || setting_aside_ > 0;
  }
  void CountCallers(int difference) SILTFS_EXCLUDES(mutex_);
  void CountSettingAside(int difference) SILTFS_EXCLUDES(mutex_);
  // Returns when no caller of SetAside waits.
  void MakeWay() SILTFS_EXCLUDES(mutex_);
  // Rests in proportion to the bytes read, then as long as the store is in use.
  Status PaceInBackground(uint64_t plain_bytes) SILTFS_EXCLUDES(mutex_);
  void WaitAtMost(std::chrono::nanoseconds time) SILTFS_REQUIRES(mutex_);

  Env& env_;
  ChunkIndex& index_;
  SegmentLog& log_;
  SegmentCache& segments_;
  const Options options_;

  std::atomic<int64_t> last_use_;
  std::atomic<uint64_t> saved_bytes_{0};
  std::atomic<uint64_t> recompressed_bytes_{0};

  // Held while a segment is rewritten, also during I/O; taken before mutex_.
  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  std::vector<Mutation> owed_ SILTFS_GUARDED_BY(run_mutex_);

  Mutex mutex_;
  CondVar wakes_;
  std::map<SegmentId, SegmentRecord> candidates_ SILTFS_GUARDED_BY(mutex_);
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;        // of Recompress
  int setting_aside_ SILTFS_GUARDED_BY(mutex_) = 0;  // callers of SetAside
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
