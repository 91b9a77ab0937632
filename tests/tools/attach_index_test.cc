// siltfs-bench attach-index adds entries to a store's index. The store's files, its recovery after
// a crash and its check work as before.
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/meta/id_allocator.h"
#include "fs/open/store_index.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tools/bench/run_bench.h"

namespace siltfs::testing {
namespace {

struct Attached {
  int code = 0;
  nlohmann::json statistics;
  std::string err;
};

Attached Attach(const std::string& store, const std::string& entries,
                const std::string& first = "0") {
  const std::vector<std::string> arguments = {"siltfs-bench", "attach-index", store, "--entries",
                                              entries,        "--first",      first, "--json"};
  std::ostringstream out;
  std::ostringstream err;
  Attached attached;
  attached.code = RunBench(arguments, out, err);
  attached.err = err.str();
  if (attached.code == 0) attached.statistics = nlohmann::json::parse(out.str());
  return attached;
}

void RequireFile(StoreFixture& store, const std::string& name, const Bytes& data) {
  auto inode = Resolve(store.fs(), name);
  REQUIRE_OK(inode);
  auto bytes = ReadFile(store.fs(), *inode);
  REQUIRE_OK(bytes);
  REQUIRE((*bytes == data));
}

CheckReport Check(StoreFixture& store) {
  CheckOptions options;
  options.store = store.path();
  auto report = CheckStore(store.env(), options);
  REQUIRE_OK(report);
  return *report;
}

// How many entries the index has for the store's own chunks, and how many siltfs-bench attached.
struct Coverage {
  uint64_t own = 0;
  uint64_t attached = 0;
  bool operator==(const Coverage&) const = default;
};

Coverage CoverageOf(StoreFixture& store) {
  const CheckReport report = Check(store);
  REQUIRE(report.findings == 0);
  return {.own = report.index_entries - report.stale_index_entries,
          .attached = report.stale_index_entries};
}

}  // namespace

TEST_CASE("attached entries are added to the store's own, and stay") {
  StoreFixture store;
  const Bytes first = RandomBytes(1, 400'000);
  const Bytes second = RandomBytes(2, 400'000);
  store.Open();
  WriteFile(store.fs(), "first", first);
  store.Close();
  const Coverage before = CoverageOf(store);
  REQUIRE(before.own > 10);
  REQUIRE(before.attached == 0);

  const Attached attached = Attach(store.path(), "30000");
  INFO(attached.err);
  REQUIRE(attached.code == 0);
  REQUIRE(attached.statistics["entries_before"] == before.own);
  REQUIRE(attached.statistics["entries_after"] == before.own + 30000);
  REQUIRE(CoverageOf(store) == Coverage{.own = before.own, .attached = 30000});

  store.Open();
  REQUIRE(store.Stats().index.entries == before.own + 30000);
  RequireFile(store, "first", first);
  WriteFile(store.fs(), "again", first);
  WriteFile(store.fs(), "second", second);
  store.Close();
  const Coverage after = CoverageOf(store);
  REQUIRE(after.attached == 30000);
  REQUIRE(after.own > before.own);
  REQUIRE(after.own == Check(store).chunks);
  store.Open();
  RequireFile(store, "again", first);
  RequireFile(store, "second", second);
  REQUIRE(store.findings().empty());
}

TEST_CASE("attaching again adds entries with new numbers only") {
  StoreFixture store;
  REQUIRE(Attach(store.path(), "1000").code == 0);  // never mounted
  REQUIRE(Attach(store.path(), "1000", "500").code == 0);
  REQUIRE(CoverageOf(store) == Coverage{.own = 0, .attached = 1500});
}

TEST_CASE("after attaching, blocks written before a crash are indexed again") {
  StoreFixture store;
  const Bytes first = RandomBytes(1, 400'000);
  const Bytes second = RandomBytes(2, 400'000);
  store.Open();
  WriteFile(store.fs(), "first", first);
  store.Close();
  REQUIRE(Attach(store.path(), "5000").code == 0);
  store.Open();
  WriteFile(store.fs(), "second", second);
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();

  const Coverage crashed = CoverageOf(store);
  REQUIRE(crashed.attached == 5000);
  store.Open();
  RequireFile(store, "first", first);
  RequireFile(store, "second", second);
  store.Close();
  const Coverage replayed = CoverageOf(store);
  REQUIRE(replayed.attached == 5000);
  REQUIRE(replayed.own == Check(store).chunks);
  REQUIRE(replayed.own > crashed.own);
}

TEST_CASE("attached entries point to segments that no store uses") {
  const auto write = [](const std::vector<Mutation>&) { return Status::Ok(); };
  IdRanges ranges;
  ranges.segment_limit = IdAllocator::first_unused_segment() - (1U << 12);
  IdAllocator last(ranges, write);
  REQUIRE_OK(last.BeginMount());
  REQUIRE(last.segment_limit() == IdAllocator::first_unused_segment());
  REQUIRE_CODE(last.ClaimSegments().status(), kFileTooLarge);
  REQUIRE(last.segment_limit() == IdAllocator::first_unused_segment());
  ++ranges.segment_limit;
  IdAllocator none(ranges, write);
  REQUIRE_CODE(none.BeginMount(), kFileTooLarge);
}

TEST_CASE("attaching is refused if blocks await replay, or the store is open") {
  StoreFixture store;
  store.Open();
  const Attached in_use = Attach(store.path(), "10");
  CHECK(in_use.code == 1);
  WriteFile(store.fs(), "file", RandomBytes(1, 100'000));
  REQUIRE_OK(store.fs().SyncAll());
  store.Crash();
  const Attached unclean = Attach(store.path(), "10");
  CHECK(unclean.code == 1);
  CHECK(unclean.err.find("not unmounted cleanly") != std::string::npos);
  store.Open();
  store.Close();
  CHECK(Attach(store.path(), "10").code == 0);
}

}  // namespace siltfs::testing
