#include "tools/siltfs/stat_report.h"

#include <algorithm>

#include "fs/control/stats_json.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"

namespace siltfs::testing {
namespace {

std::string Report(const nlohmann::json& statistics) {
  return FormatStatReport(statistics, TextStyle(), kSomeTime);
}

TEST_CASE("The report shows sizes with units, counts in groups and ratios") {
  FileSystemStats stats;
  stats.logical_bytes = uint64_t{3} << 30;
  stats.unique_bytes = uint64_t{1} << 30;
  stats.stored_bytes = uint64_t{1} << 29;
  stats.awaiting_recompression_bytes = uint64_t{7} << 20;
  stats.files = 1234567;
  stats.chunker_kernel = "portable";
  stats.sha1_kernel = "evp";
  stats.index.engine = "silt";
  stats.index.stores.push_back({.kind = "sorted_store", .entries = 1000});
  const std::string report = Report(ToJson(
      stats, "/data/store", DaemonInfo{.pid = 42, .mountpoint = "/mnt", .transport = "dev_fuse"}));
  INFO(report);
  CHECK(Has(report, "/data/store\n"));
  CHECK(Has(report, "on /mnt (process 42)"));
  CHECK(Has(report, "Requests    through /dev/fuse\n"));
  CHECK(Has(report, "3.0 GiB"));
  CHECK(Has(report, "3.00 : 1  by deduplication"));
  CHECK(Has(report, "512.0 MiB"));
  CHECK(Has(report, "2.00 : 1  by compression"));
  CHECK(Has(report, "7.0 MiB  of the stored; siltfs settle recompresses it\n"));
  CHECK(Has(report, "1,234,567"));
  CHECK(Has(report, "files are cut by"));
  CHECK(Has(report, "portable"));
  CHECK(Has(report, "Index (silt)"));
  CHECK(Has(report, "sorted_store"));
}

TEST_CASE("The report shows ratios only for at least 1 MiB of data") {
  FileSystemStats stats;
  stats.index.engine = "silt";
  for (const uint64_t logical : {uint64_t{0}, (uint64_t{1} << 20) - 1, uint64_t{1} << 20}) {
    stats.logical_bytes = stats.unique_bytes = stats.stored_bytes = logical;
    const std::string report = Report(ToJson(stats, "/store", std::nullopt));
    INFO(report);
    CHECK(Has(report, " : 1  ") == (logical == 1 << 20));
  }
}

TEST_CASE("The report shows the disk and the last scrub") {
  FileSystemStats stats;
  stats.index.engine = "silt";
  stats.disk_bytes = uint64_t{2} << 30;
  stats.disk_available_bytes = uint64_t{1} << 30;
  const std::string never = Report(ToJson(stats, "/store", std::nullopt));
  INFO(never);
  CHECK(Has(never, "2.0 GiB  below the store, 1.0 GiB of it free\n"));
  CHECK(Has(never, "never  when all stored data was last verified\n"));
  stats.last_scrub = LastScrub{.ended_ns = 1'700'000'000'000'000'000};
  const std::string once = Report(ToJson(stats, "/store", std::nullopt));
  INFO(once);
  CHECK(Has(once, "2023-11-14  when all stored data was last verified\n"));
}

TEST_CASE("The report shows why a store has turned read-only") {
  FileSystemStats stats;
  stats.read_only = true;
  stats.read_only_cause = "the disk failed";
  const std::string report = Report(ToJson(stats, "/store", std::nullopt));
  CHECK(Has(report, "Mounted     no\n"));
  CHECK(Has(report, "the disk failed"));
}

TEST_CASE("stat --json prints one JSON document and nothing else") {
  const TemporaryDirectory directory;
  REQUIRE(Run({"siltfs", "mkfs", directory / "store"}).code == 0);
  const Outcome outcome = Run({"siltfs", "stat", "--json", directory / "store"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("pid").is_null());
  CHECK(json.at("files") == 0);
  CHECK(json.at("directories") == 1);
  CHECK(json.at("index").at("engine") == "silt");
}

}  // namespace
}  // namespace siltfs::testing
