#include "index/flash/parallel_jobs.h"

#include <algorithm>
#include <system_error>

namespace siltfs {

ParallelJobs::ParallelJobs(size_t count, size_t threads, Job job)
    : count_(count), job_(std::move(job)), failed_(count) {
  threads_.reserve(std::min(count, threads));
  while (threads_.size() < std::min(count, threads)) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      return;  // Finish does the remaining jobs
    }
  }
}

ParallelJobs::~ParallelJobs() {
  Finish().IgnoreError("callers that need the status call Finish first");
}

Status ParallelJobs::Finish() {
  Work();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  MutexLock lock(mutex_);
  Status copy = failure_;
  failure_.IgnoreError("a copy is returned");
  return copy;
}

void ParallelJobs::Work() {
  MutexLock lock(mutex_);
  while (next_ < count_ && failed_ == count_) {
    const size_t i = next_++;
    mutex_.Unlock();
    Status done = job_(i);
    mutex_.Lock();
    if (done.ok() || i > failed_) {
      done.IgnoreError("one before it has failed");
      continue;
    }
    failure_.IgnoreError("one before it has failed");
    failed_ = i;
    failure_ = std::move(done);
  }
}

}  // namespace siltfs
