// Reservations of quotas by several threads.
#include "fs/inodes/quotas.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr QuotaNumber kQuota = 7;

void AddQuota(Quotas& quotas, const QuotaLimits& limits) {
  REQUIRE(quotas.BeginCount(kQuota, {.directory = 2, .limits = limits}));
  quotas.EndCount(kQuota);
}

TEST_CASE("reservations do not make operations fail that have room") {
  constexpr int kRounds = 200;
  Quotas quotas;
  AddQuota(quotas, {.bytes = 0, .files = kRounds});
  for (int round = 0; round + 1 < kRounds; ++round) {
    auto room = quotas.Reserve(kQuota, {.bytes = 0, .files = kRounds - round});
    REQUIRE_OK(room);
    auto making = std::make_optional(*std::move(room));
    // The operation has made a file, which counts twice until the reservation ends.
    quotas.Count({{kQuota, kOneFile}});
    std::atomic<bool> begun = false;
    Status other;
    std::thread thread([&] {
      begun = true;
      other = quotas.Reserve(kQuota, kOneFile).status();
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    making.reset();
    thread.join();
    REQUIRE_OK(other);
  }
}

TEST_CASE("an operation without room is refused at once") {
  Quotas quotas;
  AddQuota(quotas, {.bytes = 100, .files = 0});
  quotas.Count({{kQuota, {.bytes = 60, .files = 0}}});
  REQUIRE_CODE(quotas.Reserve(kQuota, {.bytes = 41, .files = 0}).status(), kQuotaExceeded);
  REQUIRE_OK(quotas.Reserve(kQuota, {.bytes = 40, .files = 0}));
}

TEST_CASE("one quota is counted at a time, and has no effect meanwhile") {
  Quotas quotas;
  REQUIRE(quotas.BeginCount(kQuota, {.directory = 2, .limits = {.bytes = 0, .files = 1}}));
  CHECK_FALSE(quotas.BeginCount(kQuota + 1, {.directory = 3, .limits = {}}));
  quotas.Count({{kQuota, {.bytes = 5, .files = 3}}});
  REQUIRE_OK(quotas.Reserve(kQuota, kOneFile));
  CHECK(quotas.All().empty());
  CHECK_FALSE(quotas.Find(kQuota));
  CHECK(quotas.Existing(kQuota) == kQuota);
  quotas.EndCount(kQuota);
  REQUIRE(quotas.Find(kQuota));
  CHECK(quotas.Find(kQuota)->usage == QuotaUsage{.bytes = 5, .files = 3});
  REQUIRE_CODE(quotas.Reserve(kQuota, kOneFile).status(), kQuotaExceeded);
}

TEST_CASE("a count gets only directories that were moved for it") {
  Quotas quotas;
  REQUIRE(quotas.BeginCount(kQuota, {.directory = 2, .limits = {}}));
  quotas.AddToCount(5);
  // An earlier count, which a rollback has ended, may still run.
  CHECK(quotas.TakeToCount(kQuota - 1).empty());
  CHECK(quotas.TakeToCount(kQuota) == std::vector<InodeNumber>{5});
  quotas.EndCount(kQuota);
  quotas.AddToCount(6);
  CHECK(quotas.TakeToCount(kQuota).empty());
}

}  // namespace
}  // namespace siltfs::testing
