// How fast a garbage collection works. In the background it rests after each piece of work. It
// rests longer while the store is in use, but not at all if the disk is also nearly full. A
// collection that a caller has requested never rests.
//
// Thread-safety: call it within a run of the job (BackgroundJob::Run). Errors: kInterrupted if the
// run must end; the failure that turned the log read-only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "fs/jobs/background_job.h"
#include "fs/jobs/store_activity.h"
#include "fs/mark/mark.h"
#include "fs/segments/segment_log.h"
#include "store/base/progress_meter.h"

namespace siltfs {

class CollectionPace {
 public:
  struct Options {
    std::string store;
    // At most this many bytes are read and written per second in the background (0: unlimited).
    uint64_t bytes_per_second = 0;
  };
  // The referenced objects must outlive this one.
  CollectionPace(Env& env, const SegmentLog& log, const StoreActivity& activity, BackgroundJob& job,
                 Options options);

  bool in_background() const { return job_.in_background(); }
  Status CheckRunning() { return job_.CheckRunning(); }
  // Call it before or after `bytes` are read or written. Rests in the background.
  Status Pace(uint64_t bytes);
  // Returns the pace of a mark. Call this when the mark begins.
  MarkPace PaceOfMark();
  // How far the run is.
  ProgressMeter& progress() { return progress_; }
  const ProgressMeter& progress() const { return progress_; }
  // Runs `work`. In the background, `work` runs on a thread that gets processor time only when no
  // other thread wants it.
  void Run(const std::function<void()>& work) const;

 private:
  void Rest(std::chrono::nanoseconds pause);
  bool IsNearlyFull() const;

  Env& env_;
  const SegmentLog& log_;
  const StoreActivity& activity_;
  BackgroundJob& job_;
  const Options options_;
  ProgressMeter progress_;
};

}  // namespace siltfs
