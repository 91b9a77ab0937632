#include "tools/siltfs/metrics_text.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/tools/open_metrics.h"
#include "tests/tools/some_statistics.h"
#include "tools/siltfs/metric_families.h"

namespace siltfs::testing {
namespace {

const std::map<std::string, std::string> kStoreLabel = {{"store", "/srv/store"}};

// The value of the family's only sample, which must have only the store's label.
double ValueOf(const std::map<std::string, ParsedFamily>& families, const std::string& name) {
  INFO(name);
  REQUIRE(families.contains(name));
  const ParsedFamily& family = families.at(name);
  REQUIRE(family.samples.size() == 1);
  CHECK(family.samples[0].labels == kStoreLabel);
  return family.samples[0].value;
}

TEST_CASE("the metrics follow the rules of OpenMetrics, and have every family") {
  const auto families =
      ParseOpenMetrics(FormatMetrics("/srv/store", WithBucket(ToMountedJson(SomeStatistics()))));
  for (const MetricFamily& family : StoreMetricFamilies()) {
    const std::string name = std::string("siltfs_") + family.name;
    ValueOf(families, name);
    const bool is_counter = family.type == MetricType::kCounter;
    CHECK(families.at(name).type == (is_counter ? "counter" : "gauge"));
    CHECK(families.at(name).unit == family.unit);
    CHECK(families.at(name).help == family.help);
  }
  CHECK(ValueOf(families, "siltfs_up") == 1);
  CHECK(ValueOf(families, "siltfs_mounted") == 1);
  CHECK(ValueOf(families, "siltfs_failed") == 0);
  CHECK(ValueOf(families, "siltfs_read_only") == 0);
  CHECK(ValueOf(families, "siltfs_logical_bytes") == 40.0 * (1 << 30));
  CHECK(ValueOf(families, "siltfs_dedup_ratio") == 4);
  CHECK(ValueOf(families, "siltfs_commits") == 77);
  CHECK(ValueOf(families, "siltfs_added_bytes") == 900);
  CHECK(ValueOf(families, "siltfs_index_read_amplification_ratio") == 0.5);
  CHECK(ValueOf(families, "siltfs_last_scrub_timestamp_seconds") == kSomeTime - 3 * 86'400);
  CHECK(ValueOf(families, "siltfs_disk_available_bytes") == 60.0 * (1 << 30));
}

TEST_CASE("the component stores of the index are told apart by a label") {
  const auto families =
      ParseOpenMetrics(FormatMetrics("/srv/store", ToMountedJson(SomeStatistics())));
  for (const MetricFamily& family : IndexKindMetricFamilies()) {
    INFO(family.name);
    CHECK(families.at(std::string("siltfs_") + family.name).samples.size() == 2);
  }
  const auto& entries = families.at("siltfs_index_store_entries").samples;
  CHECK(entries[0].labels.at("kind") == "log_store");
  CHECK(entries[0].value == 4);
  CHECK(entries[1].labels.at("kind") == "sorted_store");
  CHECK(entries[1].value == 6);
}

TEST_CASE("the bucket of a store has its lag, its outage, its requests by kind, and its costs") {
  StoreBucketStats bucket = SomeBucket();
  bucket.segments.uploads = {
      .waiting = 2, .waiting_bytes = 100, .behind_seconds = 40, .last_error = {}};
  bucket.lag->commits = 3;
  bucket.lag->bytes = 7;
  bucket.lag->seconds = 1000;
  bucket.health.is_out = true;
  bucket.health.present_outage = std::chrono::seconds(9);
  bucket.health.outage = std::chrono::seconds(12);
  const auto families = ParseOpenMetrics(
      FormatMetrics("/srv/store", WithBucket(ToMountedJson(SomeStatistics()), bucket)));
  CHECK(ValueOf(families, "siltfs_bucket_behind_seconds") == 1000);
  CHECK(ValueOf(families, "siltfs_bucket_behind_bytes") == 107);
  CHECK(ValueOf(families, "siltfs_bucket_behind_commits") == 3);
  CHECK(ValueOf(families, "siltfs_bucket_waiting_segments") == 2);
  CHECK(ValueOf(families, "siltfs_bucket_stored_bytes") == 5.0 * (1 << 30) - 100);
  CHECK(ValueOf(families, "siltfs_bucket_outage_seconds") == 9);
  CHECK(ValueOf(families, "siltfs_bucket_all_outages_seconds") == 12);
  CHECK(ValueOf(families, "siltfs_bucket_fenced") == 0);
  CHECK(ValueOf(families, "siltfs_bucket_request_cost") == Approx(4 * 0.005 + 20.005 * 0.0004));
  CHECK(ValueOf(families, "siltfs_bucket_egress_cost") == Approx(2 * 0.09));
  std::map<std::string, double> requests;
  for (const auto& sample : families.at("siltfs_bucket_requests").samples)
    requests[sample.labels.at("kind")] = sample.value;
  CHECK(requests ==
        std::map<std::string, double>{
            {"put", 3000}, {"get", 20'000}, {"head", 5}, {"list", 1000}, {"delete", 7}});
}

TEST_CASE("the older format describes counters under the names of their samples") {
  const auto statistics = ToMountedJson(SomeStatistics());
  const std::string text = FormatMetrics("/a", statistics, MetricsFormat::kPrometheus);
  CHECK(text.find("# TYPE siltfs_commits_total counter\n# HELP siltfs_commits_total ") !=
        std::string::npos);
  CHECK(text.find("# TYPE siltfs_stored_bytes gauge\n# HELP ") != std::string::npos);
  CHECK(text.find("# UNIT") == std::string::npos);
  const auto samples = [](const std::string& all) {
    std::vector<std::string> lines;
    std::istringstream in(all);
    for (std::string line; std::getline(in, line);)
      if (!line.starts_with("#")) lines.push_back(line);
    return lines;
  };
  CHECK(samples(text) == samples(FormatMetrics("/a", statistics)));
}

TEST_CASE("what a store does not have, its metrics leave out") {
  FileSystemStats stats = SomeStatistics();
  stats.guide.reset();
  stats.deltas.reset();
  stats.last_scrub.reset();
  const auto families =
      ParseOpenMetrics(FormatMetrics("/srv/store", ToJson(stats, "/srv/store", std::nullopt)));
  for (const auto& [name, family] : families) {
    INFO(name);
    CHECK_FALSE(name.starts_with("siltfs_guide"));
    CHECK_FALSE(name.starts_with("siltfs_delta"));
    CHECK_FALSE(name.starts_with("siltfs_super_feature"));
    CHECK_FALSE(name.starts_with("siltfs_last_scrub"));
    CHECK_FALSE(name.starts_with("siltfs_bucket"));
  }
  CHECK(ValueOf(families, "siltfs_mounted") == 0);
  CHECK(ValueOf(families, "siltfs_up") == 1);
}

TEST_CASE("a store that cannot be read has one metric, which says so") {
  CHECK(FormatMetrics("/srv/store", nlohmann::json()) ==
        "# TYPE siltfs_up gauge\n"
        "# HELP siltfs_up 1 if the statistics of the store could be read; otherwise there is no "
        "other metric.\n"
        "siltfs_up{store=\"/srv/store\"} 0\n"
        "# EOF\n");
}

TEST_CASE("the metrics of several stores are together in each family") {
  const std::vector<StoreStatistics> stores = {{"/a", ToMountedJson(SomeStatistics())},
                                               {"/b", nullptr},
                                               {"/c", ToMountedJson(SomeStatistics())}};
  const std::string text = FormatMetrics(stores);
  const auto families = ParseOpenMetrics(text);  // refuses families that are mixed
  CHECK(families.at("siltfs_up").samples.size() == 3);
  CHECK(families.at("siltfs_up").samples[1].value == 0);
  REQUIRE(families.at("siltfs_files").samples.size() == 2);
  CHECK(families.at("siltfs_files").samples[0].labels.at("store") == "/a");
  CHECK(families.at("siltfs_files").samples[1].labels.at("store") == "/c");
  CHECK(families.at("siltfs_index_store_entries").samples.size() == 4);
  CHECK(FormatMetrics(std::vector<StoreStatistics>()) == "# EOF\n");
}

TEST_CASE("an answer that is no statistics gives metrics that follow the rules nevertheless") {
  const nlohmann::json good = WithBucket(ToMountedJson(SomeStatistics()));
  const std::vector<nlohmann::json> values = {
      nullptr, "x", true, nlohmann::json::array({1, "x"}), {{"x", 1}}};
  for (const nlohmann::json& value : values) {
    REQUIRE_NOTHROW(ParseOpenMetrics(FormatMetrics("/a", value)));
    for (const auto& [key, unused] : good.items()) {
      INFO(key << ": " << value.dump());
      nlohmann::json changed = good;
      changed[key] = value;
      REQUIRE_NOTHROW(ParseOpenMetrics(FormatMetrics("/a", changed)));
    }
    nlohmann::json changed = good;
    changed["index"]["stores"] = value;
    REQUIRE_NOTHROW(ParseOpenMetrics(FormatMetrics("/a", changed)));
    for (const auto& [key, unused] : good.at("bucket").items()) {
      changed = good;
      changed["bucket"][key] = value;
      REQUIRE_NOTHROW(ParseOpenMetrics(FormatMetrics("/a", changed)));
    }
  }
  nlohmann::json repeated = good;
  repeated["index"]["stores"].push_back(repeated["index"]["stores"][0]);
  REQUIRE_NOTHROW(ParseOpenMetrics(FormatMetrics("/a", repeated)));
}

TEST_CASE("any path can be a label") {
  const std::string path = "/a \"b\"\\c\nd{e},f";
  const auto families = ParseOpenMetrics(FormatMetrics(path, nlohmann::json()));
  CHECK(families.at("siltfs_up").samples.at(0).labels.at("store") == path);
  const auto replaced = ParseOpenMetrics(FormatMetrics("/\xff", nlohmann::json()));
  CHECK(replaced.at("siltfs_up").samples.at(0).labels.at("store") == "/\xef\xbf\xbd");
}

TEST_CASE("the parser of these tests refuses text that breaks the rules") {
  const std::string type = "# TYPE a_bytes gauge\n";
  REQUIRE_NOTHROW(ParseOpenMetrics("# EOF\n"));
  REQUIRE_NOTHROW(ParseOpenMetrics(type + "# UNIT a_bytes bytes\na_bytes{b=\"c\"} 1e-3\n# EOF\n"));
  REQUIRE_NOTHROW(ParseOpenMetrics("# TYPE a counter\na_total 1\n# EOF\n"));
  const std::string text = GENERATE_COPY(
      "", type + "a_bytes 1\n", type + "a_bytes 1\n# EOF", type + "a_bytes 1\n# EOF\n\n",
      type + "\na_bytes 1\n# EOF\n", type + "a_bytes  1\n# EOF\n", type + "a_bytes 1 2\n# EOF\n",
      type + "a_bytes x\n# EOF\n", type + "b 1\n# EOF\n", std::string("b 1\n# EOF\n"),
      type + "# EOF\n", type + "# UNIT a_bytes seconds\na_bytes 1\n# EOF\n",
      type + type + "a_bytes 1\n# EOF\n", type + "a_bytes 1\n" + type + "# EOF\n",
      type + "a_bytes 1\na_bytes 2\n# EOF\n", type + "a_bytes{b=\"\\t\"} 1\n# EOF\n",
      type + "a_bytes{b=\"c} 1\n# EOF\n", type + "a_bytes{b=\"c\",b=\"d\"} 1\n# EOF\n",
      type + "a_bytes{} 1\n# EOF\n", std::string("# TYPE a counter\na 1\n# EOF\n"),
      std::string("# TYPE a counter\na_total -1\n# EOF\n"),
      std::string("# TYPE a info\na 1\n# EOF\n"), type + "# a comment\na_bytes 1\n# EOF\n",
      type + "a_bytes 1\n# TYPE b gauge\nb 1\n" + type + "a_bytes{c=\"d\"} 1\n# EOF\n",
      type + "a_bytes{b=\"\xff\"} 1\n# EOF\n");
  INFO(text);
  CHECK_THROWS_AS(ParseOpenMetrics(text), NotOpenMetrics);
}

}  // namespace
}  // namespace siltfs::testing
