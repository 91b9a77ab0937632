// Verifies everything that is stored, with the store in use: segment after segment, in the order of
// their ids (segment_scrub.h). Damaged chunks are put on the list of damage (damage_list.h). Listed
// chunks that are undamaged are taken off the list.
//
// Progress is written to metadata after each segment. If a scrub was interrupted, or ended by an
// unmount, the next scrub continues behind the last verified segment, and its statistics cover all
// parts. After a complete scrub, the next one begins with the first segment again.
//
// Thread-safety: every call from any thread; one scrub at a time, the next waits. Memory:
// segment_scrub.h. Errors: kIoError if the device fails again and again; failures to write
// metadata, which end all writing. After kNoSpace the scrub goes on, but its progress is not
// written: a later scrub cannot continue there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/dedup/damage_list.h"
#include "fs/dedup/recompressor.h"
#include "fs/dedup/scrub_outcome.h"
#include "fs/dedup/segment_cache.h"
#include "fs/dedup/segment_log.h"
#include "fs/dedup/segment_scrub.h"
#include "fs/dedup/segment_set.h"
#include "fs/meta/kv_store.h"
#include "fs/meta/scrub_record.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Scrubber {
 public:
  // Dependencies. All must outlive it.
  struct Dependencies {
    Env& env;
    SegmentLog& log;
    SegmentCache& segments;
    const Recompressor& recompressor;
    DamageList& damage;
  };
  struct Options {
    std::string store;
    StoreUuid uuid;
    TagKey::Secret tag_secret{};
    std::optional<ScrubRecord> reached;                           // progress of an unfinished scrub
    std::function<std::shared_ptr<const KvSnapshot>()> snapshot;  // of the last commit
    std::function<Status(const std::vector<Mutation>&)> write_through;
    std::function<void(const std::string&)> report;  // called with damage; may be empty
    std::function<void()> on_damage;                 // called when the list has grown; may be empty
    uint64_t bytes_per_second = 64u << 20;           // uncompressed bytes, at the gentle pace
  };
  Scrubber(const Dependencies& dependencies, Options options);
  ~Scrubber();  // stops

  // Enter and Leave enclose a scrub and the processing of its outcome.
  void Enter() SILTFS_EXCLUDES(mutex_);
  void Leave() SILTFS_EXCLUDES(mutex_);
  // Call between Enter and Leave; calls are serialised.
  Result<ScrubOutcome> Scrub(ScrubPace pace) SILTFS_EXCLUDES(run_mutex_, mutex_);
  // Ends all scrubs between Enter and Leave soon; they are not complete.
  void Interrupt() SILTFS_EXCLUDES(mutex_);
  // Returns kInterrupted in scrubs that Interrupt ended, and after Stop.
  Status CheckRunning() SILTFS_EXCLUDES(mutex_);
  // Ends running scrubs soon; no other begins.
  void Stop() SILTFS_EXCLUDES(run_mutex_, mutex_);

 private:
  static constexpr size_t kMostReported = 1000;

  Status Pace(ScrubPace pace, uint64_t bytes) SILTFS_EXCLUDES(mutex_);
  Status ScrubAll(ScrubPace pace) SILTFS_REQUIRES(run_mutex_);
  Status ScrubSegment(SegmentId id, const SegmentRecord& record, ScrubPace pace)
      SILTFS_REQUIRES(run_mutex_);
  Result<SegmentFindings> Verify(const OpenSegment& segment, const SegmentRecord& record,
                                 ScrubPace pace);
  // Reports a segment that is missing.
  void NoteLost(SegmentId id, const SegmentRecord& record, const Status& why)
      SILTFS_REQUIRES(run_mutex_);
  void Note(SegmentId id, const SegmentFindings& findings) SILTFS_REQUIRES(run_mutex_);
  // Also writes the changes of the damage list that metadata does not have yet.
  Status WriteProgress(std::optional<std::string> progress);
  // Reports the first kMostReported sentences only.
  void Report(const std::string& sentence) SILTFS_REQUIRES(run_mutex_);

  const Dependencies deps_;
  const Options options_;

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held during a scrub
  ScrubRecord statistics_ SILTFS_GUARDED_BY(run_mutex_);
  size_t reported_ SILTFS_GUARDED_BY(run_mutex_) = 0;  // since the scrub was begun

  Mutex mutex_;
  CondVar wakes_;
  int callers_ SILTFS_GUARDED_BY(mutex_) = 0;           // between Enter and Leave
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;  // applies to all of callers_
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace siltfs
