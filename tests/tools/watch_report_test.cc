#include "tools/siltfs/watch_report.h"

#include <algorithm>
#include <sstream>

#include "fs/control/activity_json.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"
#include "tools/siltfs/text_layout.h"
#include "tools/siltfs/watch_command.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kMiB = 1 << 20;

StoreActivityReport Before() {
  StoreActivityReport report;
  report.monotonic_ns = 5'000'000'000;
  report.read_bytes = 7 * kMiB;
  report.put_bytes = 100;
  report.block_hits = 50;
  return report;
}

// Two seconds later.
StoreActivityReport After() {
  StoreActivityReport report = Before();
  report.monotonic_ns += 2'000'000'000;
  report.read_bytes += 200 * kMiB;
  report.reads += 3000;
  report.written_bytes += 20 * kMiB;
  report.writes += 200;
  report.put_bytes += 18 * kMiB;
  report.added_bytes += 6 * kMiB;
  report.put_chunks += 2000;
  report.put_chunks_found_in_memory += 1000;
  report.block_hits += 90;
  report.blocks_decoded += 10;
  report.index = {.lookups = 1000,
                  .flash_reads = 30,
                  .flash_bytes_written = 2 * kMiB,
                  .conversions = 2,
                  .merges = 1,
                  .merge_backlog = 4};
  report.recompression = {.running = true, .bytes = 64 * kMiB};
  report.gc = {.running = true, .bytes = 0};
  report.stored_bytes = 300 * kMiB;
  report.dead_bytes = 3 * kMiB;
  report.awaiting_recompression_bytes = 32 * kMiB;
  report.damaged_blocks = 1;
  report.disk_available_bytes = 4096 * kMiB;
  return report;
}

TEST_CASE("Rates are the growth of counters per second") {
  const WatchInterval interval = Between(Before(), After());
  CHECK(interval.seconds == 2);
  CHECK(interval.read_bytes == 100.0 * kMiB);
  CHECK(interval.reads == 1500);
  CHECK(interval.written_bytes == 10.0 * kMiB);
  CHECK(interval.dedup_ratio == 3.0);
  CHECK(interval.block_hits == 0.9);
  CHECK(interval.names_in_memory == 0.5);
  CHECK(interval.index_lookups == 500);
  CHECK(interval.merges == 1);
  CHECK(interval.recompressed_bytes == 32.0 * kMiB);
}

TEST_CASE("Without traffic there are no ratios, and counters that fell are no traffic") {
  const WatchInterval idle = Between(Before(), Before());
  CHECK_FALSE(idle.dedup_ratio);
  CHECK_FALSE(idle.block_hits);
  CHECK_FALSE(idle.names_in_memory);
  CHECK(idle.read_bytes == 0);
  const WatchInterval fell = Between(After(), Before());
  CHECK(fell.read_bytes == 0);
  CHECK(fell.merges == 0);
}

TEST_CASE("A line of the table has a cell below each title") {
  const std::string titles = WatchTitles();
  const std::string line = WatchLine(Between(Before(), After()), "12:00:00");
  CHECK(
      titles ==
      "TIME         READ/s    WRITE/s      NEW/s   DEDUP  BLOCKS  NAMES  LOOKUP/s  MERGES  QUEUE  "
      " RECOMP/s       GC/s    SCRUB/s\n");
  CHECK(
      line ==
      "12:00:00  100.0 MiB   10.0 MiB    3.0 MiB    3.00     90%    50%       500       3      4  "
      " 32.0 MiB         on          -\n");
  CHECK(WatchLine(Between(Before(), Before()), "12:00:00").size() == titles.size());
}

TEST_CASE("The document of an interval has rates, and null where nothing was asked") {
  const nlohmann::json json = WatchToJson(Between(Before(), After()), 1'700'000'000);
  CHECK(json.at("time") == 1'700'000'000);
  CHECK(json.at("read_bytes_per_s") == 100.0 * kMiB);
  CHECK(json.at("dedup_ratio") == 3.0);
  CHECK(json.at("index").at("merge_backlog") == 4);
  CHECK(json.at("gc") == nlohmann::json{{"running", true}, {"bytes_per_s", 0.0}});
  const nlohmann::json idle = WatchToJson(Between(Before(), Before()), 0);
  CHECK(idle.at("dedup_ratio").is_null());
  CHECK(idle.at("block_hit_rate").is_null());
}

TEST_CASE("The view shows the last interval and the course before it") {
  WatchView view("/srv/store", "/mnt", 2000);
  view.Add(Between(Before(), Before()));
  view.Add(Between(Before(), After()));
  const std::string text = view.Draw("12:00:00", {});
  CHECK(text == R"(/mnt  12:00:00  every 2 s
Reads         100.0 MiB/s    1500/s   #
Writes         10.0 MiB/s     100/s   .
Dedup            3.00 : 1     3.0 MiB/s new of    9.0 MiB/s; so far 3.00 : 1
Caches                90%  of the blocks;  50% of the names without the index
Index               500/s  lookups;     15/s reads,    1.0 MiB/s written
Merges                  1  and 2 conversions; 4 component stores wait
Recompress     32.0 MiB/s    32.0 MiB waiting
GC                running     3.0 MiB dead
Scrub                idle           1 damaged blocks known
Space           300.0 MiB  stored; 4.0 GiB free on the disk
)");
  const std::string narrow = view.Draw("12:00:00", {.columns = 30, .utf8 = true, .color = true});
  CHECK(Lines(narrow) == Lines(text));
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) CHECK(WidthOf(line) <= 30);
  CHECK(Has(view.Draw("12:00:00", {.columns = 100, .utf8 = true}), "\u2588\n"));
}

TEST_CASE("The view shows that a failure has made the store read-only") {
  StoreActivityReport failed = After();
  failed.read_only = true;
  WatchView view("/srv/store", "", 500);
  view.Add(Between(Before(), failed));
  const std::string text = view.Draw("12:00:00", {.columns = 100});
  CHECK(Has(text, "/srv/store  12:00:00  every 0.5 s\n"));
  CHECK(Has(text, "Read-only   a failure has made the store read-only (siltfs stat)\n"));
}

TEST_CASE("The report of a daemon's activity is decoded as it was encoded") {
  StoreActivityReport report = After();
  report.read_only = true;
  const nlohmann::json json = ToJson(report);
  const auto back = ActivityFromJson(json);
  REQUIRE_OK(back);
  CHECK(ToJson(*back) == json);
  const nlohmann::json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    INFO(pointer);
    // The progress of runs, which watches do not need.
    if (pointer.ends_with("/step") || pointer.ends_with("/done") || pointer.ends_with("/total"))
      continue;
    nlohmann::json wrong = json;
    wrong[nlohmann::json::json_pointer(pointer)] = "x";
    REQUIRE_CODE(ActivityFromJson(wrong), kCorruption);
  }
  REQUIRE_CODE(ActivityFromJson(nlohmann::json()), kCorruption);
  REQUIRE_CODE(ActivityFromJson(nlohmann::json::array()), kCorruption);
}

TEST_CASE("--watch takes seconds, and the place before or after it") {
  for (const char* text : {"1", "0.1", "3600", "2.5"}) REQUIRE_OK(ParseWatchInterval(text));
  CHECK(ParseWatchInterval("2.5")->count() == 2500);
  for (const char* text : {"0", "0.05", "3601", "", "1s", "inf", "nan", "-1"})
    REQUIRE_CODE(ParseWatchInterval(text), kInvalidArgument);
}

TEST_CASE("--watch refuses a store that is not mounted, and wrong arguments") {
  const TemporaryDirectory directory;
  const std::string store = directory / "store";
  REQUIRE(Run({"siltfs", "mkfs", store}).code == 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--watch", store},
                                                {store, "--watch"},
                                                {store, "--watch", "2"},
                                                {"--watch", "2", store},
                                                {"--watch", store, "--json"},
                                                {"--watch=2", store}}) {
    std::vector<std::string> command = {"siltfs", "stat"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = Run(command);
    INFO(outcome.err);
    CHECK(outcome.code == 1);
    CHECK(Has(outcome.err, store + ": is not mounted; --watch shows what a mounted store does"));
  }
  const Outcome missing = Run({"siltfs", "stat"});
  CHECK(missing.code == 2);
  CHECK(missing.err == "siltfs: STORE|MOUNTPOINT is required (try siltfs stat --help)\n");
  CHECK(Run({"siltfs", "stat", "--watch", "2"}).code == 2);
  CHECK(Has(Run({"siltfs", "stat", store, "--watch", "soon"}).err,
            "--watch: \"soon\" is not a number of seconds from 0.1 to 3600"));
  CHECK(Run({"siltfs", "stat", "--watch", directory / "nothing"}).code == 10);
}

}  // namespace
}  // namespace siltfs::testing
