// SILT, section 4: an index answers before all of it has been read.
#include "silt_fixture.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = 20'000;

// An index that was not closed, with eight partitions and stores of all kinds.
struct Left : SiltFixture {
  Left() {
    options.partition_bits = 3;
    options.bucket_bits = 6;
    options.write_batch_pages = 1;
    auto index = Open();
    for (uint64_t part = 0; part < 20; ++part) PutNumbers(*index, part * 1000, 1000, part + 1);
    REQUIRE_OK(index->Flush());
    PutNumbers(*index, kNames, 2000, 21);
    REQUIRE(index->durable_sequence() == 20 - 1);
    options.serve_early = true;
  }

  uint32_t PartitionOfNumber(uint64_t number) const {
    return PartitionOf(NameHash{*options.hash_secret}.Of(NameOf(number)), options.partition_bits);
  }
  // Returns a number that falls into the partition.
  uint64_t NumberIn(uint32_t partition) const {
    for (uint64_t i = 0;; ++i) {
      if (PartitionOfNumber(i) == partition) return i;
    }
  }
};

}  // namespace

TEST_CASE(
    "opening reads only the manifest and the directory, and the first lookup only its partition") {
  Left fixture;
  const uint64_t before = fixture.env.Calls(SimCall::kRead);
  const uint64_t written = fixture.env.Calls(SimCall::kMutating);
  auto index = fixture.Open();
  const uint64_t opening = fixture.env.Calls(SimCall::kRead) - before;
  CHECK(opening <= 8);  // only the manifest and its edits are read, for any number of stores
  REQUIRE(GetNumber(*index, fixture.NumberIn(7)).has_value());
  const uint64_t first = fixture.env.Calls(SimCall::kRead) - before - opening;
  REQUIRE(index->durable_sequence() > 0);
  const uint64_t rest = fixture.env.Calls(SimCall::kRead) - before - opening - first;
  CHECK(rest > first);                                     // the other seven partitions
  CHECK(fixture.env.Calls(SimCall::kMutating) > written);  // the files are repaired only now
}

TEST_CASE("lookups after a crash write nothing until all partitions are recovered") {
  Left fixture;
  const uint64_t written = fixture.env.Calls(SimCall::kMutating);
  auto index = fixture.Open();
  CheckNumbers(*index, 0, kNames);
  CHECK(fixture.env.Calls(SimCall::kMutating) == written);
  PutNumbers(*index, 50'000, 1, 30);
  CHECK(fixture.env.Calls(SimCall::kMutating) > written);
  CheckNumbers(*index, 0, kNames);
  REQUIRE_OK(index->Close());
  fixture.options.serve_early = false;
  index = fixture.Open();
  CheckNumbers(*index, 0, kNames);
  CheckNumbers(*index, 50'000, 1);
}

TEST_CASE("an index that was opened early reports the same durable sequence") {
  Left fixture;
  fixture.env.PowerCut({.unsynced = CrashPolicy::Unsynced::kSubset, .seed = 5});
  fixture.options.serve_early = GENERATE(false, true);
  auto index = fixture.Open();
  if (fixture.options.serve_early) REQUIRE(GetNumber(*index, 17).has_value());
  CHECK(index->durable_sequence() == 19);
  REQUIRE_CODE(index->Put(NumberedEntries(0, 1), 19), kInvalidArgument);
  REQUIRE_OK(index->WaitUntilOpen());
  PutNumbers(*index, kNames, 10, 20);
}

TEST_CASE("a partition that can't be opened fails its own lookups, and every writing call") {
  Left fixture;
  const StoreFileId broken = fixture.Files(StoreKind::kHash).at(0);
  const std::string contents = fixture.Contents(broken);
  fixture.Restore(broken, contents.substr(0, contents.size() - 1));
  auto index = fixture.Open();
  const uint64_t inside = fixture.NumberIn(broken.partition);
  const uint64_t outside = fixture.NumberIn(broken.partition ^ 1);
  REQUIRE_CODE(index->Get(NameOf(inside)).status(), kCorruption);
  REQUIRE(GetNumber(*index, outside).has_value());
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 100; ++i) names.push_back(NameOf(i));
  std::vector<std::optional<Location>> results(names.size());
  REQUIRE_CODE(index->Get(names, results), kCorruption);
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE(results[i].has_value() == (fixture.PartitionOfNumber(i) != broken.partition));
  }
  REQUIRE_CODE(index->WaitUntilOpen(), kCorruption);
  REQUIRE_CODE(index->Put(NumberedEntries(0, 1), 50), kCorruption);
  REQUIRE_CODE(index->Delete(NameOf(1)), kCorruption);
  REQUIRE_CODE(index->Flush(), kCorruption);
  REQUIRE_CODE(index->ForEach([](const OrderedEntry&) { return Status::Ok(); }), kCorruption);
  CHECK(index->durable_sequence() == 0);
  REQUIRE_CODE(index->Close(), kCorruption);
}

TEST_CASE("a failed sync during recovery is not retried") {
  Left fixture;
  auto index = fixture.Open();
  fixture.env.FailCall({.calls = SimCall::kSync, .path_part = ".log"});
  REQUIRE_CODE(index->WaitUntilOpen(), kIoError);
  REQUIRE_CODE(index->WaitUntilOpen(), kIoError);
  REQUIRE_CODE(index->Put(NumberedEntries(0, 1), 50), kIoError);
  CHECK(index->durable_sequence() == 0);
  CheckNumbers(*index, 0, kNames);
}

TEST_CASE("an index that loads in the background always answers correctly") {
  Left fixture;
  fixture.options.background = true;
  auto index = fixture.Open();
  while (index->stats().load_backlog > 0) CheckNumbers(*index, 0, 500);
  CheckNumbers(*index, 0, kNames);
  CHECK(index->durable_sequence() >= 19);
}

}  // namespace siltfs::testing
