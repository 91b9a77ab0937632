// Tests of the generated steps: a campaign finds only faults of calls that its steps make.
#include <algorithm>
#include <set>
#include <utility>

#include "tests/crash/operation_data.h"
#include "tests/crash/operation_generator.h"
#include "tests/crash/sequence.h"
#include "tests/crash/stepper.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

TEST_CASE("operations survive encoding and decoding") {
  const auto mix =
      GENERATE(OperationGenerator::Mix::kAll, OperationGenerator::Mix::kEntries,
               OperationGenerator::Mix::kVersions, OperationGenerator::Mix::kSnapshotsAlone);
  OperationGenerator generator(7, 10'000, mix);
  for (int i = 0; i < 500; ++i) {
    const Operation operation = generator.Next();
    const Bytes bytes = EncodeOperation(operation);
    auto back = DecodeOperation(bytes);
    REQUIRE_OK(back);
    REQUIRE(*back == operation);
    REQUIRE_CODE(DecodeOperation(ByteView(bytes).first(bytes.size() - 1)), kCorruption);
  }
}

TEST_CASE("generated imports reach every outcome of every call") {
  std::set<std::pair<Kind, std::string>> seen;
  int64_t now = kFirstTime;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    MemoryFileSystem model([&now] { return now; });
    Stepper stepper(model, 0);
    REQUIRE_OK(stepper.Begin());
    OperationGenerator generator(seed, 8192, OperationGenerator::Mix::kEntries);
    for (int step = 0; step < 400; ++step) {
      const Operation operation = generator.Next();
      now = operation.time;
      seen.emplace(operation.kind, stepper.Step(operation));
    }
  }
  const std::pair<Kind, std::string> wanted[] = {
      {Kind::kPut, "ok made"},
      {Kind::kPut, "ok replaced"},
      {Kind::kPut, "ok unchanged"},
      {Kind::kPut, "is a directory"},
      {Kind::kOffer, "ok made"},
      {Kind::kOffer, "ok replaced"},
      {Kind::kOffer, "ok unchanged"},
      {Kind::kOffer, "ok needed"},
      {Kind::kStream, "ok made"},
      {Kind::kStream, "ok replaced"},
      {Kind::kStream, "ok unchanged"},
      {Kind::kStream, "is a directory"},
      {Kind::kPlace, "ok made"},
      {Kind::kPlace, "ok replaced"},
      {Kind::kPlace, "ok unchanged"},
      {Kind::kPlace, "invalid argument"},
      {Kind::kAddName, "ok made"},
      {Kind::kAddName, "ok replaced"},
      {Kind::kAddName, "ok unchanged"},
      {Kind::kSetDirectory, "ok changed"},
      {Kind::kSetDirectory, "ok unchanged"},
      {Kind::kClone, "ok"},
      {Kind::kClone, "ok with directories"},
      {Kind::kClone, "already exists"},
      {Kind::kClone, "invalid argument"},
  };
  for (const auto& [kind, answer] : wanted) {
    Operation operation;
    operation.kind = kind;
    CAPTURE(Describe(operation), answer);
    CHECK(seen.contains({kind, answer}));
  }
}

TEST_CASE("generated imports put several entries by one call, also with the same name") {
  OperationGenerator generator(1, 8192, OperationGenerator::Mix::kEntries);
  bool repeated = false;
  for (int call = 0; call < 2'000; ++call) {
    Operation operation = generator.Next();
    std::set<std::string> names;
    while (operation.kind == Kind::kPut && operation.slot == kWithNext) {
      repeated = !names.insert(operation.directory + "/" + operation.name).second || repeated;
      operation = generator.Next();
      REQUIRE(operation.kind == Kind::kPut);
    }
  }
  CHECK(repeated);
}

TEST_CASE("versions of a text differ in few bytes, which lie in most chunks") {
  Operation operation;
  operation.size = 20'000;
  const auto version = [&operation](uint64_t text, uint64_t number) {
    operation.data_seed = VersionSeed(text, number);
    return DataOf(operation);
  };
  const Bytes first = version(1, 0);
  const Bytes second = version(1, 1);
  size_t last = 0;
  size_t differences = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i] == second[i]) continue;
    CHECK(i - last < 1024);
    last = i;
    ++differences;
  }
  CHECK(differences > 20);
  CHECK(differences < 40);
  CHECK(version(1, 0) == first);
  CHECK(version(2, 0) != first);
}

TEST_CASE("some sequences of programs, and all sequences of versions, have deltas") {
  size_t with = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    if (PlanSequence(seed).store.deltas) ++with;
    CHECK_FALSE(PlanSequence(seed, Workload::kImports).store.deltas);
    const SequencePlan plan = PlanSequence(seed, Workload::kVersions);
    CHECK(plan.store.deltas);
    CHECK(plan.mix == OperationGenerator::Mix::kVersions);
  }
  CHECK(with > 10);
  CHECK(with < 50);
}

}  // namespace
}  // namespace siltfs::testing
