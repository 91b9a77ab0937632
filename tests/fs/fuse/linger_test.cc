// Who looks for the next request before it sleeps, and when.
#include "fs/fuse/linger.h"

#include "tests/support/catch.h"

namespace siltfs::fuse::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A thread that answers requests, on a machine where as many threads want to run as one says.
class Server {
 public:
  explicit Server(unsigned processors) : linger_(processors, [this] { return Count(); }) {}

  // The next request comes `gap` after the thread had nothing to do; whether it looked for it.
  bool IdleFor(microseconds gap) {
    const bool looks = linger_.Begin(now_);
    now_ += gap;
    linger_.Arrived(now_);
    return looks;
  }

  std::optional<unsigned> runnable = 1;
  int counts = 0;

 private:
  std::optional<unsigned> Count() {
    ++counts;
    return runnable;
  }

  Linger::Time now_{std::chrono::hours(1)};
  Linger linger_;
};

constexpr microseconds kSoon{20};
constexpr microseconds kLate{500};

}  // namespace

TEST_CASE("after a request that came soon the next one is looked for") {
  Server server(2);
  REQUIRE_FALSE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kLate));
  REQUIRE_FALSE(server.IdleFor(kLate));
  REQUIRE_FALSE(server.IdleFor(kSoon));
  REQUIRE(server.IdleFor(kSoon));
}

TEST_CASE("on a single processor nothing is looked for") {
  Server server(1);
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
}

TEST_CASE("where the system does not say how busy it is nothing is looked for") {
  Server server(2);
  server.runnable = std::nullopt;
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
  server.runnable = 1;
  REQUIRE(server.IdleFor(kSoon));
}

TEST_CASE("while more threads want to run than there are processors nothing is looked for") {
  Server server(2);
  server.runnable = 3;
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(server.IdleFor(kSoon));
  // Counted now and then, not each time.
  REQUIRE(server.counts <= 1000 * kSoon / Linger::kBetweenCounts + 2);
  server.runnable = 1;
  int idle = 0;
  while (!server.IdleFor(kSoon)) REQUIRE(++idle < 1000);
  REQUIRE(idle > 100);  // one count does not decide
  server.runnable = 8;
  for (idle = 0; server.IdleFor(kSoon); ++idle) REQUIRE(idle < 1000);
}

TEST_CASE("the system says how many threads want to run, this one among them") {
  const auto count = RunnableThreads().Count();
  REQUIRE(count);
  REQUIRE(*count >= 1);
}

}  // namespace siltfs::fuse::testing
