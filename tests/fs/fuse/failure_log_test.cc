#include "fs/fuse/failure_log.h"

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>

#include "tests/support/catch.h"

namespace siltfs::fuse {
namespace {

struct Fixture {
  std::ostringstream text;
  int64_t now = FailureLog::kPeriodNanoseconds;
  std::shared_ptr<spdlog::logger> logger = [this] {
    auto made = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    made->set_pattern("%v");
    return made;
  }();
  FailureLog log{logger, [this] { return now; }};

  long Lines() const {
    const std::string all = text.str();
    return std::count(all.begin(), all.end(), '\n');
  }
};

TEST_CASE_METHOD(Fixture, "Damage is logged with its place and cause") {
  log.Add(Status(StatusCode::kCorruption, "bad checksum").At("/store/segment", 42));
  CHECK(text.str() == "/store/segment: bad checksum at offset 42\n");
}

TEST_CASE_METHOD(Fixture, "Errors caused by callers are not logged") {
  for (const StatusCode code :
       {StatusCode::kNotFound, StatusCode::kNoSpace, StatusCode::kReadOnly}) {
    log.Add(Status(code, "x"));
  }
  CHECK(Lines() == 0);
}

TEST_CASE_METHOD(Fixture, "A flood of failures is cut off, and the next period logs their number") {
  for (int i = 0; i < 1000; ++i) log.Add(Status(StatusCode::kIoError, "x"));
  CHECK(Lines() == FailureLog::kMostPerPeriod);
  now += FailureLog::kPeriodNanoseconds;
  log.Add(Status(StatusCode::kIoError, "the next"));
  CHECK(Lines() == FailureLog::kMostPerPeriod + 2);
  CHECK(text.str().ends_with("980 more failures were not logged\nthe next\n"));
}

}  // namespace
}  // namespace siltfs::fuse
