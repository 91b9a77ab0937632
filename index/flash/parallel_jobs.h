// Runs independent jobs in parallel, in threads that end with the work. The jobs mostly wait for
// the device, and a flash device answers dozens of reads in the time of one.
//
// Threads make the order of device calls random. If this order must be fixed, use 0 threads: then
// Finish runs the jobs in order.
//
// Thread-safety: a ParallelJobs belongs to one thread; its jobs are called from any thread, several
// at a time, each once at most. Objects used by the jobs must outlive it.
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

  // Starts jobs 0 to count - 1 in at most `threads` threads; fewer if the system has no more.
  ParallelJobs(size_t count, size_t threads, Job job);
  // Calls Finish.
  ~ParallelJobs();
  ParallelJobs(const ParallelJobs&) = delete;
  ParallelJobs& operator=(const ParallelJobs&) = delete;

  // Helps with the jobs and returns when all have ended. After a failure no further job is started;
  // returns the error of the lowest-numbered failed job. Further calls return the same.
  Status Finish();

 private:
  void Work();

  const size_t count_;
  const Job job_;
  std::vector<std::thread> threads_;

  Mutex mutex_;  // no other mutex is locked under it
  size_t next_ SILTFS_GUARDED_BY(mutex_) = 0;
  size_t failed_ SILTFS_GUARDED_BY(mutex_);  // the lowest failed job; count_ if none has failed
  Status failure_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
