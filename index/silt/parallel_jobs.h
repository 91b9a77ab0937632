// Work whose parts wait for the device and not for each other: done side by side, by threads that
// live no longer than the work. A flash device answers dozens of reads in the time of one.
//
// When not to use it: where each call to the device is to be in its place; without threads the jobs
// are done in order, within Finish.
//
// Thread-safety: a ParallelJobs belongs to one thread; its jobs are called by any, several at a
// time, each once at most. What they use must outlive it.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class ParallelJobs {
 public:
  using Job = std::function<Status(size_t)>;

  // Begins with jobs 0 to count - 1, in up to `threads` threads; fewer where the system has no
  // more.
  ParallelJobs(size_t count, size_t threads, Job job);
  // As Finish.
  ~ParallelJobs();
  ParallelJobs(const ParallelJobs&) = delete;
  ParallelJobs& operator=(const ParallelJobs&) = delete;

  // Takes part, and returns when all jobs are over. After one has failed no other is begun; the
  // error is that of the first in order that has failed. May be called again, for the same.
  Status Finish();

 private:
  void Work();

  const size_t count_;
  const Job job_;
  std::vector<std::thread> threads_;

  Mutex mutex_;  // nothing else is taken under it
  size_t next_ SILTFS_GUARDED_BY(mutex_) = 0;
  size_t failed_ SILTFS_GUARDED_BY(mutex_);  // whose failure it is; count_ for none
  Status failure_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
