// When a group is committed without a request for it: after a pause in the changes, and at the end
// of the commit interval at the latest.
//
// A pause makes `sync` and programs that never call fsync safe after a moment. It must not make a
// store that changes slowly and for ever commit with every change, so early commits are limited in
// two ways: in number (kBurst in a row, one per kRefill on average) and in time (after a commit
// that took T the next early one begins no sooner than kRest * T later, so that a slow disk spends
// a small part of its time on them). Neither limit delays a commit beyond the interval.
//
// Pure computation; times are those of one clock that never runs backwards. Not thread-safe: the
// caller holds its lock.
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

  // `quiet`: how long a pause has to be; 0 for no early commits at all.
  CommitPace(Time interval, Time quiet) : interval_(interval), quiet_(quiet) {}

  // When to commit a group that got its first and its last change at these times. Later changes
  // move it, so ask again when the time has come.
  Time Due(Time first_change, Time last_change) const;

  // A commit that began and ended at these times. `early`: it began before the interval was over,
  // and nothing asked for it.
  void Committed(Time began, Time ended, bool early);

 private:
  const Time interval_;
  const Time quiet_;
  Time rested_ = Time::min();  // no early commit before this
  Time spent_ = Time::min();   // when the allowance of early commits is whole again
};

}  // namespace siltfs
