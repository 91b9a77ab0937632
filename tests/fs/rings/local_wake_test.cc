// A thread's stay in SCHED_IDLE while it hands in a reply. Needs CAP_SYS_NICE.
#include "fs/rings/local_wake.h"

#include <sched.h>

#include "tests/support/catch.h"

namespace siltfs::fuse::testing {
namespace {

using std::chrono::milliseconds;

struct Fixture {
  LocalWake::Clock::time_point now{std::chrono::hours(1)};
  bool any_idle = true;
  int looks = 0;
  LocalWake wake{true,
                 [this] {
                   ++looks;
                   return any_idle;
                 },
                 [this] { return now; }};

  // The policy in which a reply is handed in that takes `duration`.
  int PolicyDuring(std::chrono::nanoseconds duration = {}) {
    int policy = -1;
    bool watched = false;
    wake.HandIn(
        [&] {
          watched = wake.Rescue();
          REQUIRE(sched_getscheduler(0) == SCHED_OTHER);
        },
        [&] {
          policy = sched_getscheduler(0);
          now += duration;
        });
    REQUIRE(sched_getscheduler(0) == SCHED_OTHER);
    REQUIRE(watched == (policy == SCHED_IDLE));
    return policy;
  }
  unsigned CountSkipped() {
    unsigned skipped = 0;
    while (PolicyDuring(milliseconds(4)) == SCHED_OTHER) ++skipped;
    return skipped;
  }
};

TEST_CASE("This process may change policies, and keeps its own") {
  CHECK(LocalWake::Permitted());
  CHECK(sched_getscheduler(0) == SCHED_OTHER);
}

TEST_CASE("A thread of another policy keeps it") {
  const sched_param none = {};
  REQUIRE(sched_setscheduler(0, SCHED_BATCH, &none) == 0);
  CHECK_FALSE(LocalWake::Permitted());
  CHECK(sched_getscheduler(0) == SCHED_BATCH);
  REQUIRE(sched_setscheduler(0, SCHED_OTHER, &none) == 0);
}

TEST_CASE("Without permission a reply is handed in with the usual policy") {
  LocalWake wake(false, [] { return true; });
  int policy = -1;
  wake.HandIn([] {}, [&] { policy = sched_getscheduler(0); });
  CHECK(policy == SCHED_OTHER);
}

TEST_CASE_METHOD(Fixture, "Replies are handed in with SCHED_IDLE, as long as that is short") {
  for (int i = 0; i < 1000; ++i) REQUIRE(PolicyDuring(LocalWake::kShortStay) == SCHED_IDLE);
}

TEST_CASE_METHOD(Fixture, "After long stays, more and more replies are handed in without one") {
  REQUIRE(PolicyDuring(milliseconds(4)) == SCHED_IDLE);
  for (unsigned expected = LocalWake::kFewSkipped; expected < LocalWake::kMostSkipped;
       expected *= 2) {
    REQUIRE(CountSkipped() == expected);
  }
  CHECK(CountSkipped() == LocalWake::kMostSkipped);
  CHECK(CountSkipped() == LocalWake::kMostSkipped);
  for (unsigned i = 0; i < LocalWake::kMostSkipped; ++i) REQUIRE(PolicyDuring() == SCHED_OTHER);
  CHECK(PolicyDuring() == SCHED_IDLE);  // a short stay
  CHECK(PolicyDuring(milliseconds(4)) == SCHED_IDLE);
  CHECK(CountSkipped() == LocalWake::kFewSkipped);
}

TEST_CASE_METHOD(Fixture, "While no processor is idle, replies are handed in without a stay") {
  any_idle = false;
  REQUIRE(PolicyDuring() == SCHED_OTHER);
  any_idle = true;
  for (int i = 0; i < 100; ++i) REQUIRE(PolicyDuring() == SCHED_OTHER);
  CHECK(looks == 1);
  now += LocalWake::kBetweenLooks;
  CHECK(PolicyDuring() == SCHED_IDLE);
  CHECK(looks == 2);
}

TEST_CASE_METHOD(Fixture, "A stay that lasts is ended by the watching thread") {
  CHECK_FALSE(wake.Rescue());
  wake.HandIn([] {},
              [this] {
                CHECK(wake.Rescue());
                CHECK(sched_getscheduler(0) == SCHED_IDLE);  // it may just have begun
                CHECK(wake.Rescue());
                CHECK(sched_getscheduler(0) == SCHED_OTHER);
              });
  CHECK_FALSE(wake.Rescue());
  wake.HandIn([] {},
              [this] {
                CHECK(wake.Rescue());
                CHECK(sched_getscheduler(0) == SCHED_IDLE);  // another stay than the last one
              });
}

}  // namespace
}  // namespace siltfs::fuse::testing
