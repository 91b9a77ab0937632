// During an outage of the bucket, one request waits for the timeout, and the others fail at once.
#include "store/bucket/outage.h"

#include "store/bucket/bucket_retry.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Turn = Outage::Turn;

TEST_CASE("after a request without an answer others fail, and one a second is tried") {
  Outage outage;
  const Outage::Clock::time_point start{};
  CHECK(outage.NextTurn(start) == Turn::kRepeat);
  outage.Began(start, "the bucket does not answer: status 503");
  CHECK(outage.NextTurn(start) == Turn::kFail);
  CHECK(outage.Failure().cause() == "the bucket does not answer: status 503");
  const auto later = start + Outage::kBetweenTries;
  CHECK(outage.NextTurn(later) == Turn::kTryOnce);
  CHECK(outage.NextTurn(later) == Turn::kFail);
  outage.Ended();
  CHECK(outage.NextTurn(later) == Turn::kRepeat);
}

TEST_CASE("only missing answers make an outage") {
  StopSignal stop;
  Outage outage;
  const auto repeat = [&](StatusCode code) {
    int calls = 0;
    const Status status = RepeatUnlessOut(outage, stop, std::chrono::nanoseconds(0), [&] {
      ++calls;
      return code == StatusCode::kOk ? Status::Ok() : Status(code, "x");
    });
    status.IgnoreError("only the outage is of interest");
    return calls;
  };
  for (const StatusCode code : {StatusCode::kOk, StatusCode::kNotFound, StatusCode::kNeedsNewer}) {
    CHECK(repeat(code) > 0);
    CHECK(outage.NextTurn({}) == Turn::kRepeat);
  }
  CHECK(outage.unanswered() == 0);
  CHECK(repeat(StatusCode::kIoError) == 1);
  CHECK(outage.NextTurn({}) == Turn::kFail);
  CHECK(outage.unanswered() == 1);
  CHECK(repeat(StatusCode::kOk) == 0);
  CHECK(outage.unanswered() == 2);  // a call that failed at once has no answer either
  // A request that is stopped says nothing about the bucket.
  outage.Ended();
  stop.Stop();
  repeat(StatusCode::kIoError);
  CHECK(outage.NextTurn({}) == Turn::kRepeat);
  CHECK(outage.unanswered() == 3);
}

}  // namespace
}  // namespace siltfs
