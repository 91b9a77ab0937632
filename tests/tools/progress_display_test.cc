// The progress of long commands: its lines, its bar, and the time that is left.
#include "tools/siltfs/progress_display.h"

#include <sstream>
#include <string>

#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/fault_env.h"
#include "tools/siltfs/long_command.h"

namespace siltfs::testing {
namespace {

// A machine whose clock the test sets.
class ClockEnv final : public FaultEnv {
 public:
  using FaultEnv::FaultEnv;
  int64_t MonotonicNanoseconds() override { return now_; }
  void Pass(int64_t seconds) { now_ += seconds * 1'000'000'000; }

 private:
  int64_t now_ = 1'000'000'000;
};

struct Fixture {
  ClockEnv env{NewPosixEnv()};
  std::ostringstream out;
  std::ostringstream err;
  Surroundings surroundings{.env = env, .out = out, .err = err};

  ProgressDisplay Display(bool quiet = false) {
    return {surroundings,
            {.command = "gc", .subject = "/st\nore", .quiet = quiet, .descriptor = {}}};
  }
  std::string Taken() {
    std::string text = err.str();
    err.str("");
    return text;
  }
};

TEST_CASE_METHOD(Fixture, "A line appears every few seconds, with the time that is left") {
  ProgressDisplay display = Display();
  display.Show({.number = 1, .name = "segments", .done = 10, .total = 110}, false);
  CHECK(Taken().empty());
  env.Pass(5);
  display.Show({.number = 1, .name = "segments", .done = 20, .total = 110}, false);
  CHECK(Taken() == "siltfs gc: /st\\nore: segments 20 of 110 (18 %), about 45 s left\n");
  env.Pass(4);
  display.Show({.number = 1, .name = "segments", .done = 30, .total = 110}, false);
  CHECK(Taken().empty());
  env.Pass(1);
  display.Show({.number = 1, .name = "segments", .done = 109, .total = 110}, false);
  CHECK(Taken() == "siltfs gc: /st\\nore: segments 109 of 110 (99 %), about 0 s left\n");
}

TEST_CASE_METHOD(Fixture, "A step whose end is not known shows the time that it has taken") {
  ProgressDisplay display = Display();
  display.Show({.number = 1, .name = "files", .done = 0}, false);
  env.Pass(3600);
  display.Show({.number = 1, .name = "files", .done = 7}, false);
  CHECK(Taken() == "siltfs gc: /st\\nore: files 7, 60 min so far\n");
  // The next step has a time of its own.
  env.Pass(5);
  display.Show({.number = 1, .name = "chunks", .done = 7}, false);
  CHECK(Taken() == "siltfs gc: /st\\nore: chunks 7\n");
  env.Pass(5);
  display.Show({.number = 1, .name = {}, .done = 0}, false);
  CHECK(Taken() == "siltfs gc: /st\\nore: running\n");
}

TEST_CASE_METHOD(Fixture, "A quiet display prints only what the user asks for") {
  ProgressDisplay display = Display(/*quiet=*/true);
  env.Pass(60);
  display.Show({.number = 1, .name = "files", .done = 1}, false);
  CHECK(Taken().empty());
  display.Show({.number = 1, .name = "files", .done = 2}, true);
  CHECK(Taken() == "siltfs gc: /st\\nore: files 2\n");
}

TEST_CASE_METHOD(Fixture, "A terminal gets a bar with the time that is left") {
  surroundings.err_is_terminal = true;
  ProgressDisplay display = Display();
  display.Show({.number = 1, .name = "files", .done = 0, .total = 30}, false);
  env.Pass(600);
  Taken();
  display.Show({.number = 1, .name = "files", .done = 3, .total = 30}, false);
  CHECK(Taken() == "\r\x1b[Kfiles [###                           ] 10 %, about 90 min left");
  display.Clear();
  CHECK(Taken() == "\r\x1b[K");
}

TEST_CASE("Times are for people") {
  CHECK(FormatTime(0) == "0 s");
  CHECK(FormatTime(119) == "119 s");
  CHECK(FormatTime(120) == "2 min");
  CHECK(FormatTime(7199) == "119 min");
  CHECK(FormatTime(7200) == "2 h 0 min");
  CHECK(FormatTime(48 * 3600) == "2 days");
}

TEST_CASE("An interruption says what is true afterwards, once") {
  const Status interrupted = Status(StatusCode::kInterrupted, "was interrupted").At("/store");
  const Status explained = ExplainInterruption(interrupted, "nothing has changed");
  CHECK(explained.Is(StatusCode::kInterrupted));
  CHECK(explained.ToString() == "/store: was interrupted; nothing has changed");
  CHECK(ExplainInterruption(explained, "something else").ToString() == explained.ToString());
  const Status other(StatusCode::kIoError, "failed");
  CHECK(ExplainInterruption(other, "nothing has changed").ToString() == "failed");
}

}  // namespace
}  // namespace siltfs::testing
