// Decides when a group is committed without a request: after a pause in the changes, and at the end
// of the commit interval at the latest.
//
// Because groups are committed at pauses, `sync` usually has little to do, and a crash loses little
// of the data of programs that never call fsync. A store that always changes slowly must not commit
// every change, so there are two limits for such early commits. Their number is limited: kBurst in
// a row, and one per kRefill on average. And after a commit that took the time T, the next early
// commit begins kRest * T later at the earliest. So a slow disk spends only a small part of its
// time on early commits. Neither limit delays a commit beyond the interval.
//
// Pure computation; all times come from one monotonic clock. Not thread-safe: the caller holds its
// lock.
#pragma once

#include <chrono>
#include <cstdint>

namespace siltfs {

class CommitPace {
 public:
  using Time = std::chrono::nanoseconds;

  static constexpr int kBurst = 5;
  static constexpr std::chrono::milliseconds kRefill{1000};
  static constexpr int kRest = 10;

  // `quiet`: minimum length of a pause; 0 disables early commits.
  CommitPace(Time interval, Time quiet) : interval_(interval), quiet_(quiet) {}

  // Returns when to commit a group whose first and last change came at these times. Later changes
  // move this time, so call Due again when it is reached.
  Time Due(Time first_change, Time last_change) const;

  // Records a commit that began and ended at these times. `early`: it began without a request and
  // before the interval was over.
  void Committed(Time began, Time ended, bool early);

 private:
  const Time interval_;
  const Time quiet_;
  Time rested_ = Time::min();  // no early commit before this time
  Time spent_ = Time::min();   // when the allowance of early commits is full again
};

}  // namespace siltfs
