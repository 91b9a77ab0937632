// Logs failures with their cause, because a program sees only an errno. The rate is limited: one
// damaged file that is read repeatedly must not fill the disk with log lines.
//
// Thread-safety: from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <spdlog/logger.h>

#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

class FailureLog {
 public:
  static constexpr uint32_t kMostPerPeriod = 20;
  static constexpr int64_t kPeriodNanoseconds = 10'000'000'000;

  // `clock` returns nanoseconds and never runs backwards.
  FailureLog(std::shared_ptr<spdlog::logger> log, std::function<int64_t()> clock)
      : log_(std::move(log)), clock_(std::move(clock)) {}

  // Logs failures of the disk and of the store, but not errors that any program can cause (no such
  // file, no space). Failures that are left out in a period are counted. The first failure after
  // the period logs their number.
  void Add(const Status& status);

 private:
  const std::shared_ptr<spdlog::logger> log_;
  const std::function<int64_t()> clock_;

  Mutex mutex_;
  int64_t period_start_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint32_t logged_ SILTFS_GUARDED_BY(mutex_) = 0;  // in this period
  uint64_t left_out_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs::fuse
