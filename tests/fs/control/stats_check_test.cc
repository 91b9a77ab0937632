#include "fs/control/stats_check.h"

#include <string>
#include <vector>

#include "fs/control/stats_json.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Place = Json::json_pointer;

// Statistics in which no key is null.
Json FullStats() {
  FileSystemStats stats;
  stats.label = stats.uuid = stats.read_only_cause = "text";
  stats.last_scrub.emplace();
  stats.guide.emplace();
  stats.deltas.emplace();
  stats.deltas->lsh.emplace();
  stats.index.stores.push_back({.kind = "log_store", .entries = 4});
  stats.index.stores.push_back({.kind = "sorted_store", .entries = 6});
  return ToJson(stats, "/store", DaemonInfo{.pid = 17, .mountpoint = "/m", .transport = "t"});
}

// As a client receives it.
Json Sent(const Json& statistics) { return Json::parse(statistics.dump()); }

std::vector<Place> PlacesIn(const Json& document) {
  std::vector<Place> places;
  const Json flat = document.flatten();
  for (const auto& [place, value] : flat.items()) {
    for (Place part(place); !part.empty(); part.pop_back()) places.push_back(part);
  }
  return places;
}

TEST_CASE("statistics of any store pass the check unchanged") {
  const FileSystemStats empty;
  for (const Json& statistics : {FullStats(), ToJson(empty, "/store", std::nullopt)}) {
    const auto checked = CheckStats(Sent(statistics));
    REQUIRE_OK(checked);
    CHECK(*checked == Sent(statistics));
  }
}

TEST_CASE("a value of another type is refused, wherever it is") {
  const Json good = Sent(FullStats());
  for (const Place& place : PlacesIn(good)) {
    INFO(place.to_string());
    Json bad = good;
    bad[place] = good[place].is_object() ? Json::array({1}) : Json::object();
    REQUIRE_CODE(CheckStats(bad), kNeedsNewer);
  }
  for (const Json& other : {Json(), Json(1), Json("x"), Json::array()})
    REQUIRE_CODE(CheckStats(other), kNeedsNewer);
  Json negative = good;
  negative["files"] = -1;
  REQUIRE_CODE(CheckStats(negative), kNeedsNewer);
  Json huge = good;
  huge["files"] = 1e300;
  REQUIRE_CODE(CheckStats(huge), kNeedsNewer);
}

TEST_CASE("a key that an earlier version does not send becomes null, if it may be null") {
  Json earlier = Sent(FullStats());
  earlier.erase("label");
  earlier.erase("last_scrub");
  earlier["deltas"].erase("lsh");
  const auto checked = CheckStats(earlier);
  REQUIRE_OK(checked);
  CHECK(checked->at("label").is_null());
  CHECK(checked->at("last_scrub").is_null());
  CHECK(checked->at("deltas").at("lsh").is_null());
  earlier.erase("files");
  REQUIRE_CODE(CheckStats(earlier), kNeedsNewer);
}

}  // namespace
}  // namespace siltfs
