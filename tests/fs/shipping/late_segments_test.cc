// A fenced writer puts segments after the next writer has begun, and has looked for such segments.
#include <set>

#include "fs/open/rebuild_index.h"
#include "tests/fs/shipping/site.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kSmallSegments = 16u << 10;

// The segments that have objects.
std::set<std::string> SegmentsIn(const MemoryObjectStore& objects) {
  std::set<std::string> stems;
  for (const std::string& key : objects.Keys()) {
    if (key.starts_with("segments/")) stems.insert(key.substr(0, key.rfind('-')));
  }
  return stems;
}

TEST_CASE("late segments: those with ids that the next writer does not use are no damage") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make(kSmallSegments);
  REQUIRE_OK(site.Open());
  FileHistory history(1);
  for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Site other(objects, 2);
  REQUIRE_OK(other.Restore());
  REQUIRE_OK(other.Open());
  FileHistory more(2);
  more.states = {history.states.back()};
  for (int i = 0; i < 2; ++i) REQUIRE_OK(more.Step(*other.fs));
  REQUIRE_OK(other.Ship());

  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  const auto before = SegmentsIn(objects);
  REQUIRE_OK(site.session->bucket()->RunBackground());
  const auto late = SegmentsIn(objects);
  REQUIRE(late.size() > before.size());
  other.Close();
  REQUIRE(SegmentsIn(objects) == late);
  other.Check();
  {
    BucketSegmentStore segments(*other.env, objects, other.Bucket());
    IndexRebuildOptions rebuild;
    rebuild.store = "/store";
    rebuild.segments = &segments;
    REQUIRE_OK(RebuildIndex(*other.env, rebuild));
  }
  REQUIRE_OK(other.Open());
  REQUIRE(other.ReadAll() == more.states.back());
  REQUIRE_OK(other.Ship());
  REQUIRE_OK(other.session->bucket()->RunBackground());
  CHECK(SegmentsIn(objects).size() < late.size());
  other.Close();
  other.Check();
}

// The first writer claims ids in a commit that the bucket never gets, so the next one claims the
// same ids.
TEST_CASE("late segments: those with ids that the next writer uses do not win") {
  const bool crash = GENERATE(false, true);
  for (uint64_t seed = 1; seed <= (kIsSanitized ? 3 : 12); ++seed) {
    INFO("seed " << seed);
    MemoryObjectStore objects;
    Site site(objects, 1);
    site.Make(kSmallSegments << seed % 3);
    REQUIRE_OK(site.Open());
    FileHistory history(seed);
    for (int i = 0; i < 3; ++i) REQUIRE_OK(history.Step(*site.fs));
    site.Close();
    const Files shipped = history.states.back();
    REQUIRE_OK(site.Open());
    for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));

    Site other(objects, 2);
    REQUIRE_OK(other.Restore());
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == shipped);
    FileHistory more(seed + 1000);
    more.states = {shipped};
    for (uint64_t i = 0; i < seed % 4 + 1; ++i) REQUIRE_OK(more.Step(*other.fs));
    const auto before = SegmentsIn(objects);
    REQUIRE_OK(site.session->bucket()->RunBackground());
    REQUIRE(SegmentsIn(objects).size() > before.size());
    CHECK(!site.Ship().ok());

    if (crash) {
      other.Crash();
      other.env->PowerCut();
    } else {
      other.Close();
      other.Check();
    }
    REQUIRE_OK(other.Open());
    REQUIRE(other.ReadAll() == more.states.back());
    for (int i = 0; i < 8; ++i) REQUIRE_OK(more.Step(*other.fs));
    REQUIRE_OK(other.Ship());
    Site third(objects, 3);
    REQUIRE_OK(third.Restore());
    REQUIRE_OK(third.Open());
    REQUIRE(third.ReadAll() == more.states.back());
    third.Close();
    third.Check();
    other.Crash();
  }
}

}  // namespace
}  // namespace siltfs::testing
