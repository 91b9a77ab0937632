// How far a long piece of work is: one thread does the work and counts, other threads look.
//
// Thread-safety: every call from any thread. The counts of a look may be a moment apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "store/base/thread_annotations.h"

namespace siltfs {

// A step of some work. `step` names what is counted, such as "segments"; empty: no work runs.
struct WorkProgress {
  std::string_view step;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: not known
};

class ProgressMeter {
 public:
  ProgressMeter() = default;
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;

  // Begins a step. `step` must be a literal.
  void Begin(std::string_view step, uint64_t total = 0) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    step_ = step;
    total_ = total;
    done_ = 0;
  }
  // Takes over the counts of other work, whose step is a literal.
  void Put(const WorkProgress& progress) SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    step_ = progress.step;
    total_ = progress.total;
    done_ = progress.done;
  }
  void Add(uint64_t count = 1) { done_.fetch_add(count, std::memory_order_relaxed); }
  void Set(uint64_t done) { done_.store(done, std::memory_order_relaxed); }
  // No work runs any more.
  void End() { Begin({}); }

  WorkProgress Now() const SILTFS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return {step_, done_.load(std::memory_order_relaxed), total_};
  }

 private:
  mutable Mutex mutex_;
  std::string_view step_ SILTFS_GUARDED_BY(mutex_);
  uint64_t total_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> done_{0};
};

// While it exists, some work runs. Its end ends the work of the meter.
class MeteredWork {
 public:
  explicit MeteredWork(ProgressMeter& meter) : meter_(meter) {}
  ~MeteredWork() { meter_.End(); }
  MeteredWork(const MeteredWork&) = delete;
  MeteredWork& operator=(const MeteredWork&) = delete;

 private:
  ProgressMeter& meter_;
};

}  // namespace siltfs
