// Repeats requests to a bucket that fails.
//
// Thread-safety: the functions may be called from any thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "store/base/status.h"
#include "store/bucket/outage.h"
#include "store/bucket/stop_signal.h"

namespace siltfs {

inline Status WithoutPlace(const Status& status, StatusCode code, std::string_view what) {
  return Status(code, std::string(what) + std::string(status.cause()));
}

// Calls `request`, which returns a Status, until it succeeds, with growing pauses, until `timeout`
// has passed or the signal comes. Errors, without a place:
//   kCorruption   several answers were wrong. They are not repeated until the timeout, because an
//                 object that is damaged in the bucket would then look like a bucket without
//                 answers
//   kIoError      the bucket does not answer, or does not have the object
//   kNeedsNewer   at once
// A request that was interrupted is not repeated either (kIoError).
template <typename Request>
Status RepeatRequest(StopSignal& stop, std::chrono::nanoseconds timeout, const Request& request) {
  constexpr std::chrono::milliseconds kFirstPause(50);
  constexpr std::chrono::seconds kLongestPause(5);
  constexpr int kMostWrongAnswers = 4;
  const auto end = std::chrono::steady_clock::now() + timeout;
  RetryPauses backoff(kFirstPause, kLongestPause,
                      static_cast<uint64_t>(end.time_since_epoch().count()));
  for (int wrong = 0;;) {
    Status status = request();
    if (status.ok() || status.Is(StatusCode::kNeedsNewer)) return status;
    if (status.Is(StatusCode::kInterrupted)) return WithoutPlace(status, StatusCode::kIoError, "");
    const bool is_wrong = status.Is(StatusCode::kCorruption);
    const bool is_missing = status.Is(StatusCode::kNotFound);
    if ((is_wrong || is_missing) && ++wrong == kMostWrongAnswers) {
      return is_wrong ? WithoutPlace(status, StatusCode::kCorruption, "")
                      : WithoutPlace(status, StatusCode::kIoError, "the bucket lacks the object: ");
    }
    const auto pause = backoff.Next();
    const bool late = std::chrono::steady_clock::now() + pause > end;
    if (late && !is_wrong && !is_missing)
      return WithoutPlace(status, StatusCode::kIoError, "the bucket does not answer: ");
    // When the time is over, a wrong answer is repeated at once.
    if (late ? stop.stopped() : !stop.Pause(pause))
      return WithoutPlace(status, StatusCode::kIoError, "");
  }
}

// The same, but fails at once during an outage, notes when one begins and ends, and counts the
// calls without an answer.
template <typename Request>
Status RepeatUnlessOut(Outage& outage, StopSignal& stop, std::chrono::nanoseconds timeout,
                       const Request& request) {
  const Outage::Turn turn = outage.NextTurn(Outage::Clock::now());
  if (turn == Outage::Turn::kFail) {
    outage.CountUnanswered();
    return outage.Failure();
  }
  bool answered = false;
  Status status = RepeatRequest(
      stop, turn == Outage::Turn::kRepeat ? timeout : std::chrono::nanoseconds(0), [&] {
        Status tried = request();
        answered = tried.ok() || tried.Is(StatusCode::kCorruption) ||
                   tried.Is(StatusCode::kNotFound) || tried.Is(StatusCode::kNeedsNewer);
        return tried;
      });
  if (answered) {
    outage.Ended();
    return status;
  }
  outage.CountUnanswered();
  if (!stop.stopped()) outage.Began(Outage::Clock::now(), status.cause());
  return status;
}

}  // namespace siltfs
