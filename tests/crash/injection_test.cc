// Tests of the faults that are injected into traces.
#include "tests/crash/injection.h"

#include <algorithm>

#include "tests/crash/sequence.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE("an injected fault only leaves out or moves syncs") {
  SequencePlan plan = PlanSequence(11);
  plan.largest_write = 100'000;
  plan.steps = 60;
  plan.fault.reset();
  auto trace = RunSequence(plan);
  REQUIRE_OK(trace);
  auto count = [](const SimTrace& records, SimRecord::Kind kind) {
    return std::count_if(records.begin(), records.end(),
                         [kind](const SimRecord& record) { return record.kind == kind; });
  };
  const size_t keep = trace->size() / 10;
  const SimTrace skipped = Inject(*trace, Injection::kSkipSegmentSync, keep);
  const SimTrace swapped = Inject(*trace, Injection::kSwapCommitOrder, keep);
  const SimTrace dropped = Inject(*trace, Injection::kDropDirectorySync, keep);
  for (const auto kind : {SimRecord::Kind::kWrite, SimRecord::Kind::kMark, SimRecord::Kind::kRename,
                          SimRecord::Kind::kCreateFile}) {
    for (const SimTrace* broken : {&skipped, &swapped, &dropped})
      REQUIRE(count(*broken, kind) == count(*trace, kind));
  }
  REQUIRE(count(skipped, SimRecord::Kind::kSync) < count(*trace, SimRecord::Kind::kSync));
  REQUIRE(swapped.size() == trace->size());
  REQUIRE(EncodeTrace(swapped) != EncodeTrace(*trace));
  REQUIRE(count(dropped, SimRecord::Kind::kSync) == count(*trace, SimRecord::Kind::kSync));
  REQUIRE(EncodeTrace(Inject(*trace, Injection::kNone, 0)) == EncodeTrace(*trace));
}

}  // namespace
}  // namespace siltfs::testing
