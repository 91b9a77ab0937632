// Verifies everything that is stored, while the store is in use. Segments are verified one after
// another, in the order of their ids (segment_scrub.h). Damaged chunks are put on the damage list
// (damage_list.h). Listed chunks that are undamaged are taken off the list.
//
// Progress is written to metadata after each segment. If a scrub was interrupted, or ended by an
// unmount, the next scrub continues after the last verified segment, and its statistics cover all
// parts. After a complete scrub, the next one begins with the first segment again. The end of a
// complete scrub is recorded, too (last_scrub_record.h).
//
// Thread-safety: every call from any thread. One scrub runs at a time, and others wait for it.
// Memory: segment_scrub.h. Errors: kIoError if the device fails for many blocks in a row. Any
// failure to write metadata, except kNoSpace, ends the scrub and all writing to the store. After
// kNoSpace the scrub goes on, but this progress is not in metadata: after a remount, the next scrub
// may verify the same segments again. The end of the scrub may be missing in metadata, too.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/chunks/base_reader.h"
#include "fs/jobs/background_job.h"
#include "fs/jobs/store_activity.h"
#include "fs/meta/commit_port.h"
#include "fs/records/scrub_history.h"
#include "fs/records/scrub_record.h"
#include "fs/scrub/scrub_outcome.h"
#include "fs/segments/block_pipeline.h"
#include "fs/segments/damage_list.h"
#include "fs/segments/segment_cache.h"
#include "fs/segments/segment_log.h"
#include "store/base/notice.h"
#include "store/base/progress_meter.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

struct SegmentFindings;

class Scrubber {
 public:
  // Dependencies. All must outlive it.
  struct Dependencies {
    Env& env;
    SegmentLog& log;
    SegmentCache& segments;
    BaseReader& bases;
    BlockPipeline& pipeline;
    DamageList& damage;
    const StoreActivity& activity;  // a gentle scrub is slower unless the store is quiet
    CommitPort& metadata;
  };
  struct Options {
    std::string store;
    StoreUuid uuid;
    TagKey::Secret tag_secret{};
    std::optional<ScrubRecord> reached;         // progress of an unfinished scrub
    std::function<void(const Notice&)> report;  // called with damage; may be empty
    uint64_t bytes_per_second = 64u << 20;      // uncompressed bytes, at the gentle pace
  };
  Scrubber(const Dependencies& dependencies, Options options);
  ~Scrubber();  // calls Stop

  // A caller keeps a Call while it prepares a scrub, calls Scrub and processes the outcome.
  // Interrupt ends only the scrubs of callers that have a Call.
  class Call {
   public:
    explicit Call(Scrubber& scrubber) : caller_(scrubber.job_) {}

   private:
    const BackgroundJob::Caller caller_;
  };
  // Verifies the segments in the metadata of the last commit. If the last scrub was not complete,
  // skips the segments that the last scrub has verified. The caller must have a Call. Scrubs run
  // one after another.
  Result<ScrubOutcome> Scrub(ScrubPace pace);
  // Makes the scrubs of all current Calls return soon with incomplete outcomes. The next scrub
  // continues where they stopped.
  void Interrupt() { job_.Interrupt(); }
  // Returns kInterrupted if Interrupt has ended the caller's Call, and after Stop.
  Status CheckRunning() { return job_.CheckRunning(); }
  // Makes running scrubs return soon, and all later scrubs at once. Their outcomes are incomplete.
  void Stop() { job_.Stop(); }
  bool running() const { return job_.running(); }
  WorkProgress progress() const { return progress_.Now(); }
  // Bytes of segment files that were verified since the store was opened, in all scrubs.
  uint64_t verified_bytes() const { return verified_bytes_; }

 private:
  static constexpr size_t kMostReported = 1000;

  Status Pace(ScrubPace pace, uint64_t bytes);
  Status ScrubAll(ScrubPace pace) SILTFS_REQUIRES(job_.run_mutex());
  Status ScrubSegment(SegmentId id, const SegmentRecord& record, ScrubPace pace)
      SILTFS_REQUIRES(job_.run_mutex());
  Result<SegmentFindings> Verify(const OpenSegment& segment, const SegmentRecord& record,
                                 ScrubPace pace);
  // Reports a missing segment, and counts its chunks as damaged.
  void NoteLost(SegmentId id, const SegmentRecord& record, const Status& why)
      SILTFS_REQUIRES(job_.run_mutex());
  void Note(SegmentId id, const SegmentFindings& findings) SILTFS_REQUIRES(job_.run_mutex());
  // Writes these records of the scrub. Also writes the changes of the damage list that metadata
  // does not have yet.
  Status WriteRecords(std::vector<Mutation> records);
  // The history of scrubs with this one; nullopt if the history must not be replaced.
  std::optional<ScrubHistory> WithScrub(const PastScrub& scrub) const;
  // Passes the first kMostReported notices to options_.report. In place of the next one, passes a
  // sentence that says that there is more damage.
  void Report(const Notice& notice) SILTFS_REQUIRES(job_.run_mutex());

  const Dependencies deps_;
  const Options options_;

  BackgroundJob job_;
  ProgressMeter progress_;
  std::atomic<uint64_t> verified_bytes_{0};
  ScrubRecord statistics_ SILTFS_GUARDED_BY(job_.run_mutex());
  size_t reported_ SILTFS_GUARDED_BY(job_.run_mutex()) = 0;  // notices in this call of Scrub
};

}  // namespace siltfs
