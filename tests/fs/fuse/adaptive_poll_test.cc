// Adaptive polling: when a thread polls for the next request before it sleeps.
#include "fs/fuse/adaptive_poll.h"

#include "tests/support/catch.h"

namespace siltfs::fuse::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A thread that answers requests, on a machine with a given number of runnable threads.
class Server {
 public:
  explicit Server(unsigned processors) : adaptive_poll_(processors, [this] { return Count(); }) {}

  // The next request comes `gap` after the thread became idle; returns whether it polled.
  bool IdleFor(microseconds gap) {
    const bool looks = adaptive_poll_.Begin(now_);
    now_ += gap;
    adaptive_poll_.Arrived(now_);
    return looks;
  }

  std::optional<unsigned> runnable = 1;
  int counts = 0;

 private:
  std::optional<unsigned> Count() {
    ++counts;
    return runnable;
  }

  AdaptivePoll::Time now_{std::chrono::hours(1)};
  AdaptivePoll adaptive_poll_;
};

constexpr microseconds kSoon{20};
constexpr microseconds kLate{500};

}  // namespace

TEST_CASE("after a request that came soon the thread polls for the next one") {
  Server server(2);
  REQUIRE_FALSE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kLate));
  REQUIRE_FALSE(server.IdleFor(kLate));
  REQUIRE_FALSE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kSoon));
}

TEST_CASE("on a single processor there is no polling") {
  Server server(1);
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
}

TEST_CASE("without a count of runnable threads there is no polling") {
  Server server(2);
  server.runnable = std::nullopt;
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
  server.runnable = 1;
  REQUIRE(server.IdleFor(kSoon));
}

TEST_CASE("with more runnable threads than processors there is no polling") {
  Server server(2);
  server.runnable = 3;
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
  // The server counts threads now and then, not each time.
  REQUIRE(server.counts <= 1000 * kSoon / AdaptivePoll::kBetweenCounts + 2);
  server.runnable = 1;
  int idle = 0;
  while (!server.IdleFor(kSoon)) REQUIRE(++idle < 1000);
  REQUIRE(idle > 100);  // one count with fewer runnable threads is not enough
  server.runnable = 8;
  for (idle = 0; server.IdleFor(kSoon); ++idle) REQUIRE(idle < 1000);
}

TEST_CASE("the system reports the number of runnable threads, including this one") {
  const auto count = RunnableThreads().Count();
  REQUIRE(count);
  REQUIRE(*count >= 1);
}

}  // namespace siltfs::fuse::testing
