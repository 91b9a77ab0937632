// How many rings and slots there are for a machine's processors.
#include "fs/rings/ring_plan.h"

#include <numeric>
#include <set>

#include "fs/rings/ring_protocol.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using fuse::ParseProcessorList;
using fuse::PlanRings;
using fuse::Processors;
using fuse::RingPlan;
using Numbers = std::vector<unsigned>;

Numbers UpTo(unsigned count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

size_t SlotsOf(const RingPlan& plan) {
  size_t slots = 0;
  for (const RingPlan::Ring& ring : plan.rings) slots += ring.slot_queues.size();
  return slots;
}

Numbers Parsed(std::string_view text) {
  const auto list = ParseProcessorList(text);
  REQUIRE_OK(list);
  return *list;
}

}  // namespace

TEST_CASE("Lists of processors are parsed") {
  CHECK(Parsed("0\n") == Numbers{0});
  CHECK(Parsed("0-3") == Numbers{0, 1, 2, 3});
  CHECK(Parsed("0-1,4,6-7\n") == Numbers{0, 1, 4, 6, 7});
}

TEST_CASE("A list of processors that makes no sense is refused") {
  for (const std::string_view text :
       {"", "\n", ",", "0,", "-", "3-1", "1,1", "2,1", "x", "0-", "-1", "0 1", "65536",
        "0-4294967295", "99999999999999999999"}) {
    INFO(text);
    REQUIRE_CODE(ParseProcessorList(text), kCorruption);
  }
}

TEST_CASE("This machine's processors can be read") {
  const auto processors = fuse::ReadProcessors();
  REQUIRE_OK(processors);
  CHECK_FALSE(processors->online.empty());
  CHECK(processors->possible.size() >= processors->online.size());
}

TEST_CASE("A machine with two processors has two rings for requests of a megabyte") {
  const RingPlan plan = PlanRings({.possible = UpTo(2), .online = UpTo(2)});
  REQUIRE(plan.rings.size() == 2);
  CHECK(plan.payload_bytes == size_t{1} << 20);
  CHECK(plan.rings[1].processor == 1);
  CHECK(plan.rings[1].slot_queues == Numbers(8, 1));
}

TEST_CASE("Memory is bounded, and each possible processor has a slot, on any machine") {
  for (const unsigned online : {1U, 2U, 3U, 5U, 8U, 24U, 64U, 300U}) {
    for (const unsigned possible : {online, online + 1, 2 * online, 512U}) {
      CAPTURE(online, possible);
      const RingPlan plan = PlanRings({.possible = UpTo(possible), .online = UpTo(online)});
      CHECK(plan.payload_bytes >= fuse::kMinRingPayloadBytes);
      REQUIRE(plan.rings.size() == online);
      std::set<unsigned> served;
      for (const RingPlan::Ring& ring : plan.rings) {
        CHECK(std::count(ring.slot_queues.begin(), ring.slot_queues.end(), ring.processor) >= 2);
        served.insert(ring.slot_queues.begin(), ring.slot_queues.end());
      }
      CHECK(served.size() == possible);
      const size_t spare = possible - online;
      if (online <= 64) CHECK((SlotsOf(plan) - spare) * plan.payload_bytes <= fuse::kRingBytes);
    }
  }
}

TEST_CASE("Processors need not be numbered without gaps") {
  const RingPlan plan = PlanRings({.possible = {0, 1, 2, 3}, .online = {1, 3}});
  REQUIRE(plan.rings.size() == 2);
  CHECK(plan.rings[0].slot_queues.front() == 1);
  CHECK(plan.rings[1].slot_queues.front() == 3);
  CHECK(SlotsOf(plan) == 8 * 2 + 2);
}

TEST_CASE("Without processors there are no rings") { CHECK(PlanRings({}).rings.empty()); }

}  // namespace siltfs::testing
