// Checks and repairs of stores whose deltas have lost their bases.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "fs/repair/repair_store.h"
#include "tests/fs/core/delta_files.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

RepairReport Repair(DeltaFiles& store) {
  RepairOptions options;
  options.check.store = store.path;
  options.check.segments = SealedSegments(store.env);
  options.check.data = true;
  options.mode = RepairMode::kAll;
  const auto report = RepairStore(store.env, options);
  REQUIRE_OK(report);
  return *report;
}

// Requires that all files can be read, and have their bytes except for the lost ranges, which are
// zero. Returns the names of the files with lost ranges.
std::set<std::string> RequireRepaired(DeltaFiles& store, const RepairReport& report) {
  std::set<std::string> damaged;
  std::map<std::string, Bytes> expected = store.files;
  for (const LostContent& lost : report.lost) {
    std::string name = lost.path;
    while (name.starts_with('/')) name.erase(0, 1);
    damaged.insert(name);
    REQUIRE(expected.contains(name));
    const auto begin = expected[name].begin() + static_cast<ptrdiff_t>(lost.range.offset);
    std::fill(begin, begin + static_cast<ptrdiff_t>(lost.range.length), uint8_t{0});
  }
  for (const auto& [name, content] : expected) {
    INFO(name);
    const auto read = ReadFile(*store.fs, *Resolve(*store.fs, name));
    REQUIRE_OK(read);
    const bool same = *read == content;
    REQUIRE(same);
  }
  return damaged;
}

}  // namespace

TEST_CASE("a check finds the deltas whose base is damaged, and a repair drops them") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  REQUIRE(store.SpoilBase(3) == 1);
  const std::multiset<std::string> found = store.Check(/*data=*/true);
  CHECK(found.contains("delta-base"));
  CHECK(found.contains("block-payload"));
  CHECK(found.contains("chunk-damaged"));
  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  const std::set<std::string> damaged = RequireRepaired(store, report);
  CHECK(damaged.contains(DeltaFiles::Name("base", 3)));
  CHECK(damaged.contains(DeltaFiles::Name("similar", 3)));
  CHECK(damaged.size() < store.files.size() / 2);
  // The store works on.
  store.WriteSimilar(3, 5);
  store.Collect();
  store.End();
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
}

TEST_CASE("a check without payloads finds the deltas whose base is in no segment") {
  DeltaFiles store;
  store.Fill(6);
  for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  store.End();
  REQUIRE(store.Check(/*data=*/false).empty());
  // Remove the segment that most deltas need.
  std::map<SegmentId, size_t> needed;
  const auto stored = StoredNames::Open(store.env, store.path, SealedSegments(store.env));
  REQUIRE_OK(stored);
  std::set<ChunkName> bases;
  store.ForEachDelta(
      [&](SegmentId, const ChunkRecord&, const BaseRef& base) { bases.insert(base.name); });
  const auto index = store.OpenItsIndex();
  for (const ChunkName& name : bases) {
    const auto place = index->Get(name);
    REQUIRE_OK(place);
    REQUIRE(*place);
    ++needed[(*place)->segment];
  }
  REQUIRE_OK(index->Close());
  const SegmentId most =
      std::max_element(needed.begin(), needed.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const auto segments = SegmentsOf(store.env, store.path);
  REQUIRE_OK(segments->Remove(most));
  const std::multiset<std::string> found = store.Check(/*data=*/false);
  CHECK(found.contains("segment-missing"));
  CHECK(found.contains("delta-base"));
  CHECK(found.contains("chunk-damaged"));

  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  CHECK(!RequireRepaired(store, report).empty());
}

TEST_CASE("a check finds bases without an index, and a repair of the index changes no delta") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  const size_t deltas = store.CountDeltas();
  REQUIRE(store.Forget([](const ChunkName&) { return true; }) > 0);
  CHECK(!store.Check(/*data=*/true).contains("delta-base"));
  const RepairReport report = Repair(store);
  CHECK(report.lost.empty());
  CHECK(store.CountDeltas() == deltas);
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  store.RequireFiles(*store.fs);
}

TEST_CASE("a damaged footer of a segment with deltas is repaired with its base table") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  std::set<SegmentId> with_deltas;
  store.ForEachDelta(
      [&](SegmentId id, const ChunkRecord&, const BaseRef&) { with_deltas.insert(id); });
  REQUIRE(!with_deltas.empty());
  const SegmentId id = *with_deltas.begin();
  // A byte of the base table, which lies before the trailer of 64 bytes and its own checksum.
  ChangeSegment(store.env, store.path, id, [](std::string& all) { all[all.size() - 90] ^= 1; });
  CHECK(store.Check(/*data=*/true).contains("segment-footer"));
  // Garbage collection reads the bases from the blocks.
  if (GENERATE(true, false)) {
    store.Begin();
    for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
    store.Collect();
    store.RequireFiles(*store.fs);
    store.End();
  }
  const RepairReport report = Repair(store);
  CHECK(report.left == 0);
  CHECK(report.lost.empty());
  CHECK(store.Check(/*data=*/true).empty());
  store.Begin();
  store.RequireFiles(*store.fs);
}

}  // namespace siltfs::testing
