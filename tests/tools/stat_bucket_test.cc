// The bucket of a store in the text and in the JSON document of `siltfs stat`.
#include "tools/siltfs/stat_bucket.h"

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"
#include "tools/siltfs/stat_report.h"

namespace siltfs::testing {
namespace {

std::string Report(const nlohmann::json& statistics) {
  return FormatStatReport(statistics, TextStyle(), kSomeTime);
}

std::string Report(const StoreBucketStats& bucket) {
  return Report(WithBucket(ToMountedJson(SomeStatistics()), bucket));
}

// The rest of the line that begins with this label.
std::string Row(const std::string& report, const std::string& label) {
  const size_t at = report.find("\n  " + label + " ");
  INFO(report);
  REQUIRE(at != std::string::npos);
  const size_t begin = report.find_first_not_of(' ', at + 3 + label.size());
  return report.substr(begin, report.find('\n', begin) - begin);
}

TEST_CASE("the report separates the cache from the bucket") {
  const std::string report = Report(SomeBucket());
  INFO(report);
  CHECK(Has(report, "\nBucket (s3://backups/laptop)\n"));
  CHECK(Row(report, "cache") == "1.0 GiB  local, of 2.0 GiB");
  CHECK(Row(report, "in the bucket") == "5.0 GiB  of segments, and at most 1.0 MiB of metadata");
  CHECK(Row(report, "waiting") == "0 B  in 0 segments that the bucket does not have");
  CHECK(Row(report, "behind") == "no  the bucket has everything");
  CHECK(Row(report, "writer") == "laptop, epoch 4, lease until 2023-11-14 22:13:50 UTC");
  CHECK_FALSE(Has(report, "cache is full"));
  CHECK_FALSE(Has(report, "outage"));
  CHECK_FALSE(Has(report, "last error"));
}

TEST_CASE("a store without a bucket has no such section") {
  CHECK_FALSE(Has(Report(ToMountedJson(SomeStatistics())), "Bucket"));
}

TEST_CASE("the report says how far the bucket is behind, and why writers wait") {
  StoreBucketStats bucket = SomeBucket();
  bucket.segments.uploads = {
      .waiting = 1, .waiting_bytes = uint64_t{1} << 30, .behind_seconds = 12, .last_error = {}};
  bucket.segments.cache.full = true;
  bucket.lag->commits = 1234;
  bucket.lag->bytes = 2048;
  bucket.lag->seconds = 99.2;
  bucket.lag->checkpoint_waits = true;
  bucket.health.last_error = "/a: refused\n\x1b[31m";
  bucket.health.last_error_ns = static_cast<int64_t>(kSomeTime * 1e9);
  bucket.health.is_out = true;
  bucket.health.present_outage = std::chrono::milliseconds(1500);
  const std::string report = Report(bucket);
  INFO(report);
  CHECK(Row(report, "in the bucket") == "4.0 GiB  of segments, and at most 1.0 MiB of metadata");
  CHECK(Row(report, "waiting") == "1.0 GiB  in 1 segment that the bucket does not have");
  CHECK(Row(report, "behind") ==
        "100 s  1,234 commits, with 2.0 KiB of metadata; a checkpoint brings them");
  CHECK(Row(report, "writers") ==
        "wait  because the cache is full of segments that the bucket does not have");
  CHECK(Row(report, "outage") == "2 s  the bucket does not answer");
  CHECK(Has(Row(report, "last error"), "2023-11-14 22:13:20 UTC: /a: refused"));
  CHECK_FALSE(Has(report, "\x1b"));
}

TEST_CASE("the report says that another machine has the bucket") {
  StoreBucketStats bucket = SomeBucket();
  bucket.lag->fenced = true;
  bucket.lag->lease_end_ns = static_cast<int64_t>((kSomeTime - 1) * 1e9);
  CHECK(Row(Report(bucket), "writer") ==
        "laptop, epoch 4, whose lease has ended; this copy of the store has been replaced");
}

TEST_CASE("the report counts the requests by kind, and estimates what they cost") {
  const std::string report = Report(SomeBucket());
  INFO(report);
  CHECK(Row(report, "requests") ==
        "24,012  since the mount: 3,000 PUT, 20,000 GET, 5 HEAD, 1,000 LIST, 7 DELETE");
  CHECK(Row(report, "repeated") == "8  of them; 2 calls failed");
  CHECK(Row(report, "sent") == "3.0 GiB  1.9 GiB received, since the mount");
  CHECK(Row(report, "all requests") ==
        "124,012  since 2023-11-13 22:13:20 UTC: 103,000 PUT, 20,000 GET, 5 HEAD, 1,000 LIST, 7 "
        "DELETE");
  CHECK(Row(report, "estimated") ==
        "0.12 USD a month for storage; 0.03 for requests and 0.18 for reading since the mount");
  CHECK(Has(report, "0.53 USD for requests and 0.18 for reading over the life of the store\n"));
  CHECK(Has(report, "with prices that may not be yours; see siltfs tune --bucket-prices\n"));
}

TEST_CASE("the prices of the user take the place of the defaults") {
  StoreBucketStats bucket = SomeBucket();
  bucket.prices = BucketPrices{.put = 1, .get = 0, .storage = 1, .egress = 0, .currency = "EUR"};
  const std::string report = Report(bucket);
  INFO(report);
  CHECK(Row(report, "estimated") ==
        "5.37 EUR a month for storage; 4.00 for requests and 0.00 for reading since the mount");
  CHECK_FALSE(Has(report, "may not be yours"));
  const nlohmann::json json = ToJson(bucket);
  CHECK(json.at("prices") == nlohmann::json{{"put", 1.0},
                                            {"get", 0.0},
                                            {"storage", 1.0},
                                            {"egress", 0.0},
                                            {"currency", "EUR"},
                                            {"are_defaults", false}});
  CHECK(json.at("estimated_cost").at("requests") == 4.0);
  CHECK(json.at("total").at("put_requests") == 103'000);
}

TEST_CASE("the lag is that of the commits or of the segments, whichever is longer") {
  StoreBucketStats bucket = SomeBucket();
  bucket.segments.uploads = {
      .waiting = 1, .waiting_bytes = 10, .behind_seconds = 50, .last_error = {}};
  bucket.lag->seconds = 20;
  bucket.lag->bytes = 5;
  CHECK(ToJson(bucket).at("seconds_behind") == 50.0);
  CHECK(ToJson(bucket).at("bytes_behind") == 15);
  bucket.lag->seconds = 70;
  CHECK(ToJson(bucket).at("seconds_behind") == 70.0);
  bucket.lag.reset();
  CHECK(ToJson(bucket).at("seconds_behind") == 50.0);
  CHECK_FALSE(ToJson(bucket).contains("commits_behind"));
  CHECK_FALSE(Has(Report(bucket), "\n  behind "));
}

TEST_CASE("a daemon of another version may report its bucket in any way") {
  const nlohmann::json good = WithBucket(ToMountedJson(SomeStatistics()));
  const std::vector<nlohmann::json> values = {
      nullptr, "x", true, -1, 1e300, -1e300, nlohmann::json::array({1}), {{"x", 1}}};
  for (const nlohmann::json& value : values) {
    nlohmann::json changed = good;
    changed["bucket"] = value;
    REQUIRE_NOTHROW(Report(changed));
    for (const auto& [key, part] : good.at("bucket").items()) {
      INFO(key << ": " << value.dump());
      changed = good;
      changed["bucket"][key] = value;
      REQUIRE_NOTHROW(Report(changed));
      if (!part.is_object()) continue;
      for (const auto& [inner, unused] : part.items()) {
        changed = good;
        changed["bucket"][key][inner] = value;
        REQUIRE_NOTHROW(Report(changed));
      }
    }
  }
}

}  // namespace
}  // namespace siltfs::testing
