// Settles sealed data segments: rewrites them with larger blocks and at the store's own compression
// level (what is put is compressed faster and less), each as a whole and under its id, so that the
// index need not be told (segment_rewrite.h).
//
// A segment's replacement is: the new file, durable beside the old one; the *intent*, durable in
// metadata; the rename, durable; then the new record in place of the intent, durable. After a crash
// the file that is in place says which record is true (segment_replacement.h). Readers go on
// meanwhile (segment_cache.h).
//
// Only segments are settled that are sealed, that metadata knows to be sealed, and whose blocks the
// index has durably: replay never sees the raised sequences of merged blocks beside entries that it
// must put.
//
// Thread-safety: every call from any thread. One segment is rewritten at a time. Memory: a few
// blocks and contexts of zstd, while a segment is rewritten; 64 bytes for each that awaits it.
// Errors: damage in a segment is reported, and the segment left alone; kNoSpace leaves all as it
// is, to be tried again; failures of the device after the intent end all writing
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

// How much a settled segment's blocks hold, about. Larger ones compress better and cost more to
// read a single chunk of.
inline constexpr uint32_t kSettledBlockPlainBytes = 512U << 10;

// What became of the segments that awaited recompression.
struct SettleOutcome {
  uint64_t segments = 0;      // rewritten
  uint64_t kept = 0;          // would have saved nothing, and stay as they are
  uint64_t left = 0;          // damaged, or not yet to be touched
  uint64_t bytes_before = 0;  // of the files of those rewritten and kept
  uint64_t bytes_after = 0;
};

class Recompressor {
 public:
  struct Options {
    std::string store;
    StoreUuid uuid;
    Compression compression;  // codec kNone: there is nothing to settle
    uint32_t block_plain_bytes = kSettledBlockPlainBytes;
    uint64_t needed_bytes = 0;  // that must be free on the disk
    // Writes metadata durably, beside the commits.
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // told of damage; may be empty
    // A segment of which this is so is left alone, now. May be empty.
    std::function<bool(SegmentId)> is_condemned = {};
    // One of which this is so is known to be damaged, and left alone until the next mount. May be
    // empty.
    std::function<bool(SegmentId)> is_damaged = {};
    // Of the thread in the background: how long nothing must have been put or read, and how much it
    // reads in a second, of old files and new ones (plain bytes; 0: as much as it can). It rests
    // after each block.
    std::chrono::nanoseconds quiet{std::chrono::seconds(5)};
    uint64_t bytes_per_second = 32u << 20;
    // How it waits, `at_most` so long or until `wakes` is notified, with `mutex` held as a
    // condition variable wants it. Empty: by the machine's clock; tests have Env's alone.
    std::function<void(CondVar& wakes, Mutex& mutex, std::chrono::nanoseconds at_most)> wait = {};
  };
  // All must outlive it.
  Recompressor(Env& env, ChunkIndex& index, SegmentLog& log, SegmentCache& segments,
               Options options);
  // Stops.
  ~Recompressor();

  // A sealed segment whose record is committed.
  void Add(SegmentId segment, const SegmentRecord& record);
  // Returns when none of these is being settled; none will be until it is added again. Those that
  // were still to be settled. Fails, and changes nothing, where metadata cannot be told what it is
  // owed.
  Result<SegmentRecords> SetAside(std::span<const SegmentId> segments)
      SILTFS_EXCLUDES(run_mutex_, mutex_);
  // Nothing was put or read for as long as the background waits for.
  bool IsQuiet() const;
  // The store is at work: the background makes way.
  void NoteUse() { last_use_ = env_.MonotonicNanoseconds(); }

  // Settles all that can be by now, what was added before the call. kInterrupted after Stop,
  // kNoSpace; what was settled before such a failure is. kReadOnly after a failure of the device,
  // here or earlier.
  Result<SettleOutcome> Settle();

  // From now on a thread does so whenever nothing is being put or read.
  void StartInBackground();

  // Ends the thread and a Settle under way, soon; no other begins.
  void Stop();

  // Appends what metadata must yet be told because a full disk kept it from being written.
  void TakeOwed(std::vector<Mutation>& mutations) SILTFS_EXCLUDES(run_mutex_);

  // Since it was made: what files became smaller by, and how large those were that were settled.
  uint64_t saved_bytes() const { return saved_bytes_; }
  uint64_t settled_bytes() const { return settled_bytes_; }

 private:
  using Pace = std::function<Status(uint64_t plain_bytes)>;
  struct Candidate {
    SegmentId id = kNoSegment;
    SegmentRecord record;
  };

  bool enabled() const { return options_.compression.codec != BlockCodecId::kNone; }
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  // kNoSegment if there is none.
  SegmentId LastCandidate() SILTFS_EXCLUDES(mutex_);
  // The first behind `id`; its id is kNoSegment if there is none.
  Candidate NextAfter(SegmentId id) SILTFS_EXCLUDES(mutex_);
  void Drop(SegmentId id) SILTFS_EXCLUDES(mutex_);
  SegmentRecords TakeCandidates(std::span<const SegmentId> segments) SILTFS_EXCLUDES(mutex_);

  // Settles the candidates one after another; `prepare` makes the new file.
  using Prepare = std::function<Result<PreparedRewrite>(SegmentId)>;
  Status Pass(const Prepare& prepare, SettleOutcome& outcome);
  Status SettleOne(const Candidate& candidate, const Prepare& prepare, SettleOutcome& outcome)
      SILTFS_REQUIRES(run_mutex_);
  Status Replace(const Candidate& candidate, const SegmentRecord& after)
      SILTFS_REQUIRES(run_mutex_);
  Status PayOwed() SILTFS_REQUIRES(run_mutex_);
  Status CheckSpace();
  bool IndexHas(const SegmentRecord& record);
  // Reports what keeps a segment from being rewritten, and forgets the segment until the next
  // mount.
  void LeaveAlone(const Candidate& candidate, const Status& why, SettleOutcome& outcome);
  Result<PreparedRewrite> PrepareSegment(SegmentId id, const Pace& pace);
  // Fails the log unless the failure is one of space.
  Status Judge(Status failure);

  void Work();
  // Whether the background ends what it is about: with its pauses it must not keep Settle waiting.
  bool Unwanted() const SILTFS_REQUIRES(mutex_) {
    return stopping_ || callers_ > 0 || setting_aside_ > 0;
  }
  void CountCallers(int difference) SILTFS_EXCLUDES(mutex_);
  void CountSettingAside(int difference) SILTFS_EXCLUDES(mutex_);
  // Returns when nobody waits to set segments aside.
  void MakeWay() SILTFS_EXCLUDES(mutex_);
  // Rests from having read so much, then for as long as the store is at work.
  Status PaceInBackground(uint64_t plain_bytes) SILTFS_EXCLUDES(mutex_);
  void WaitAtMost(std::chrono::nanoseconds time) SILTFS_REQUIRES(mutex_);

  Env& env_;
  ChunkIndex& index_;
  SegmentLog& log_;
  SegmentCache& segments_;
  const Options options_;

  std::atomic<int64_t> last_use_;
  std::atomic<uint64_t> saved_bytes_{0};
  std::atomic<uint64_t> settled_bytes_{0};

  // Held while a segment is rewritten, over I/O; comes before mutex_.
  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  std::vector<Mutation> owed_ SILTFS_GUARDED_BY(run_mutex_);

  Mutex mutex_;
  CondVar wakes_;
  std::map<SegmentId, SegmentRecord> candidates_ SILTFS_GUARDED_BY(mutex_);
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;        // of Settle
  int setting_aside_ SILTFS_GUARDED_BY(mutex_) = 0;  // callers of SetAside
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
