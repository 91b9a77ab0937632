// The segment guide: what it covers, and how it behaves if its files or its disk fail.
#include "fs/guide/segment_guide.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fs/guide/guide_updater.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kDirectory = "/store/guide";
constexpr uint64_t kNames = 60;

SegmentRecord Sealed() {
  SegmentRecord record;
  record.sealed = true;
  record.chunks = kNames;
  return record;
}

std::vector<uint64_t> NamesOf(SegmentId segment) {
  Random random(segment);
  std::vector<uint64_t> names;
  for (uint64_t i = 0; i < kNames; ++i) names.push_back(random.Next());
  return names;
}

struct Fixture {
  Fixture() {
    REQUIRE_OK(env.CreateDirectory("/store"));
    REQUIRE_OK(env.SyncDirectory("/"));
    for (SegmentId id = 1; id <= 20; ++id) records.emplace_back(id, Sealed());
  }
  SegmentGuide& Open(bool read_only = false) {
    SegmentGuide::Options options;
    options.directory = kDirectory;
    options.read_only = read_only;
    options.report = [this](const std::string& sentence) { reports.push_back(sentence); };
    options.filters.secret = 1;
    options.filters.shape = {.partition_bits = 1, .names_per_group = names_per_group};
    guide.reset();
    guide = SegmentGuide::Open(env, std::move(options), records);
    return *guide;
  }
  // Covers all waiting segments, and returns how many these were.
  int CoverAll() {
    int covered = 0;
    for (SegmentId id; (id = guide->NextWaiting()) != kNoSegment; ++covered)
      REQUIRE_OK(guide->Cover(id, NamesOf(id)));
    return covered;
  }
  // REQUIREs that Find names every segment for its own names, as covered or as uncovered.
  std::set<SegmentId> RequireFound() {
    std::vector<std::vector<SegmentId>> segments;
    std::vector<SegmentId> uncovered;
    for (const auto& [id, record] : records) {
      REQUIRE_OK(guide->Find(NamesOf(id), segments, uncovered));
      const bool is_uncovered = std::ranges::find(uncovered, id) != uncovered.end();
      for (const auto& found : segments)
        REQUIRE((is_uncovered || std::ranges::find(found, id) != found.end()));
    }
    return {uncovered.begin(), uncovered.end()};
  }

  SimEnv env;
  SegmentRecords records;
  std::vector<std::string> reports;
  std::unique_ptr<SegmentGuide> guide;
  uint64_t names_per_group = 100;
};

}  // namespace

TEST_CASE("sealed segments wait, and are covered from then on") {
  Fixture fixture;
  fixture.records[3].second.sealed = false;
  fixture.records[4].second.chunks = 0;
  SegmentGuide& guide = fixture.Open();
  CHECK(guide.stats().uncovered == 19);
  CHECK(fixture.CoverAll() == 18);
  fixture.records.erase(fixture.records.begin() + 4);
  CHECK(fixture.RequireFound() == std::set<SegmentId>{4});
  guide.NoteSealed(4);
  guide.NoteSealed(6);  // is covered
  CHECK(fixture.CoverAll() == 1);
  CHECK(fixture.RequireFound().empty());
  REQUIRE_OK(guide.Close());
  CHECK(fixture.Open().NextWaiting() == kNoSegment);
  CHECK(fixture.RequireFound().empty());
  CHECK(fixture.reports.empty());
}

TEST_CASE("a segment that cannot be read stays uncovered, and is searched") {
  Fixture fixture;
  SegmentGuide& guide = fixture.Open();
  guide.GiveUp(7);
  CHECK(fixture.CoverAll() == 19);
  CHECK(fixture.RequireFound() == std::set<SegmentId>{7});
  CHECK(guide.stats().uncovered == 1);
}

TEST_CASE("the last segments of a group wait again, so that its space becomes free") {
  Fixture fixture;
  fixture.names_per_group = 300;
  fixture.Open();
  CHECK(fixture.CoverAll() == 20);
  // Each group has five segments. The first one loses four of them.
  const auto gone = [](SegmentId id) { return id <= 4; };
  REQUIRE_OK(fixture.guide->DropGone(gone));
  std::erase_if(fixture.records, [&](const auto& numbered) { return gone(numbered.first); });
  CHECK(fixture.RequireFound() == std::set<SegmentId>{5});
  CHECK(fixture.guide->NextWaiting() == 5);
  CHECK(fixture.CoverAll() == 1);
  CHECK(fixture.RequireFound().empty());
  CHECK(fixture.guide->stats().filters.groups == 3);
}

TEST_CASE("segments that are gone leave the guide") {
  Fixture fixture;
  fixture.Open();
  fixture.CoverAll();
  // Each group has two segments.
  const auto gone = [](SegmentId id) { return id <= 5; };
  REQUIRE_OK(fixture.guide->DropGone(gone));
  CHECK(fixture.guide->stats().filters.segments == 15);
  CHECK_FALSE(fixture.guide->Covers(2));
  std::erase_if(fixture.records, [&](const auto& numbered) { return gone(numbered.first); });
  CHECK(fixture.RequireFound().empty());
  REQUIRE_OK(fixture.guide->Close());
  // The next opening drops the segments that have no record.
  std::erase_if(fixture.records, [&](const auto& numbered) { return numbered.first <= 10; });
  CHECK(fixture.Open().stats().filters.segments == 10);
  CHECK(fixture.RequireFound().empty());
}

TEST_CASE("a full disk lets segments wait, and they are covered later") {
  Fixture fixture;
  fixture.Open();
  const auto space = fixture.env.GetDiskSpace("/store");
  REQUIRE_OK(space);
  fixture.env.SetCapacity(space->total_bytes - space->free_bytes + 4096);
  Status status;
  for (SegmentId id; status.ok() && (id = fixture.guide->NextWaiting()) != kNoSegment;)
    status = fixture.guide->Cover(id, NamesOf(id));
  REQUIRE(status.Is(StatusCode::kNoSpace));
  CHECK(fixture.guide->NextWaiting() != kNoSegment);
  fixture.RequireFound();
  fixture.env.SetCapacity(SimEnv::kUnlimited);
  CHECK(fixture.CoverAll() > 0);
  CHECK(fixture.RequireFound().empty());
  CHECK(fixture.reports.empty());
}

TEST_CASE("damaged files are replaced by an empty guide, and only reported when read-only") {
  Fixture fixture;
  fixture.Open();
  fixture.CoverAll();
  REQUIRE_OK(fixture.guide->Close());
  const std::string manifest = JoinPath(kDirectory, "manifest");
  auto file = fixture.env.OpenFile(manifest, {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(20, AsBytes(std::string("damage"))));
  CHECK_FALSE(fixture.Open(/*read_only=*/true).usable());
  CHECK(fixture.reports.size() == 1);
  std::vector<std::vector<SegmentId>> segments;
  std::vector<SegmentId> uncovered;
  REQUIRE_CODE(fixture.guide->Find(NamesOf(1), segments, uncovered), kNotFound);
  CHECK(fixture.Open().usable());
  CHECK(fixture.reports.size() == 2);
  CHECK(fixture.CoverAll() == 20);
  CHECK(fixture.RequireFound().empty());
}

TEST_CASE("a guide that is not there is no damage") {
  Fixture fixture;
  CHECK_FALSE(fixture.Open(/*read_only=*/true).usable());
  CHECK(fixture.guide->NextWaiting() == kNoSegment);
  REQUIRE_OK(fixture.guide->Close());
  CHECK(fixture.reports.empty());
}

}  // namespace siltfs::testing
