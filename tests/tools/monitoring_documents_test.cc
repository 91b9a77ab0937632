// docs/monitoring.md describes each metric, and the rules and the dashboard use no others.
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/open_metrics.h"
#include "tests/tools/run_in_process.h"
#include "tests/tools/some_statistics.h"
#include "tools/siltfs/metrics_text.h"

namespace siltfs::testing {
namespace {

using Names = std::set<std::string>;

const std::string kRules = SILTFS_SOURCE_DIR "/tools/monitoring/siltfs-alerts.yml";
const std::string kDashboard = SILTFS_SOURCE_DIR "/tools/monitoring/siltfs-dashboard.json";

std::string ReadWhole(const std::string& path) {
  const std::optional<std::string> text = ReadTextOf(path);
  REQUIRE(text.has_value());
  return *text;
}

Names Find(const std::string& text, const std::string& pattern) {
  Names names;
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
    names.insert((*at)[1]);
  return names;
}

std::map<std::string, ParsedFamily> AllFamilies() {
  return ParseOpenMetrics(FormatMetrics("/srv/store", WithBucket(ToMountedJson(SomeStatistics()))));
}

Names AllMetrics() {
  Names names;
  for (const auto& [name, family] : AllFamilies()) names.insert(family.samples.at(0).name);
  return names;
}

Names Missing(const Names& used, const Names& known) {
  Names missing;
  for (const std::string& name : used) {
    if (!known.contains(name)) missing.insert(name);
  }
  return missing;
}

TEST_CASE("the document describes every metric with its type, and no others") {
  const std::string text = ReadWhole(SILTFS_SOURCE_DIR "/docs/monitoring.md");
  for (const std::string type : {"gauge", "counter"}) {
    INFO(type);
    Names metrics;
    for (const auto& [name, family] : AllFamilies()) {
      if (family.type == type) metrics.insert(family.samples.at(0).name);
    }
    CHECK(Find(text, "\n\\| `(siltfs_[a-z0-9_]+)` \\| " + type + " \\|") == metrics);
  }
  CHECK(Missing(Find(text, "(siltfs_[a-z0-9_]+)"), AllMetrics()) ==
        Names{"siltfs_full", "siltfs_scrub_age", "siltfs_store", "siltfs_stores"});
}

TEST_CASE("the document describes every option of check-health, with its default") {
  const std::string text = ReadWhole(SILTFS_SOURCE_DIR "/docs/monitoring.md");
  const std::string help = Run({"siltfs", "check-health", "--help"}).out;
  Names in_help = Find(help, "\n  (?:-h,)?(--[a-z-]+)");
  in_help.erase("--help");
  CHECK(in_help.size() == 9);
  for (const std::string& option : in_help) {
    INFO(option);
    CHECK(Has(text, "`" + option));
  }
  // CLI11 shows a default as "PERCENT=95" or "PERCENT [95]", depending on its version.
  const Names defaults = Find(help, "\n  (--[a-z-]+ [A-Z]+(?:=| \\[)[0-9A-Z]+)");
  CHECK(defaults.size() == 7);
  for (const std::string& shown : defaults) {
    const size_t end = shown.find_first_of("=[");
    const std::string option = shown.substr(0, shown.find_last_not_of("=[ ", end) + 1);
    INFO(shown);
    CHECK(Has(text, "`" + option + "` (" + shown.substr(end + 1) + ")"));
  }
}

TEST_CASE("the alert rules use only metrics that exist, and watch what they must") {
  const std::string text = ReadWhole(kRules);
  const Names used = Find(text, "(siltfs_[a-z0-9_]+)");
  CHECK(Missing(used, AllMetrics()).empty());
  const Names needed = {"siltfs_up",
                        "siltfs_damaged_blocks",
                        "siltfs_failed",
                        "siltfs_disk_available_bytes",
                        "siltfs_awaiting_recompression_bytes",
                        "siltfs_bucket_behind_seconds",
                        "siltfs_bucket_outage_seconds",
                        "siltfs_last_scrub_timestamp_seconds"};
  CHECK(Missing(needed, used).empty());
  CHECK(Find(text, "- alert: (\\w+)\n").size() >= 8);
}

// Runs a command of Prometheus's own checker. Returns true if the checker is not installed.
bool PromtoolAccepts(const std::string& command, const std::string& file) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    WARN("promtool is not installed");
    return true;
  }
  return std::system(("promtool " + command + " '" + file + "' >/dev/null").c_str()) == 0;
}

TEST_CASE("promtool accepts the alert rules, and each fires for the right stores") {
  CHECK(PromtoolAccepts("check rules", kRules));
  CHECK(PromtoolAccepts("test rules", SILTFS_SOURCE_DIR "/tests/tools/siltfs-alerts-test.yml"));
  // Each rule has such a test.
  const std::string tests = ReadWhole(SILTFS_SOURCE_DIR "/tests/tools/siltfs-alerts-test.yml");
  CHECK(Find(tests, "alertname=\"(\\w+)\"") == Find(ReadWhole(kRules), "- alert: (\\w+)\n"));
}

TEST_CASE("promtool accepts the expressions of the dashboard") {
  const auto dashboard = nlohmann::json::parse(ReadWhole(kDashboard));
  nlohmann::json rules = nlohmann::json::array();
  for (const auto& panel : dashboard.at("panels")) {
    for (const auto& target : panel.at("targets")) {
      std::string expression = target.at("expr");
      expression = std::regex_replace(expression, std::regex("\\$store"), ".*");
      expression = std::regex_replace(expression, std::regex("\\$__rate_interval"), "5m");
      rules.push_back({{"record", "panel_" + std::to_string(rules.size())}, {"expr", expression}});
    }
  }
  const nlohmann::json group = {{"name", "dashboard"}, {"rules", rules}};
  const TemporaryDirectory directory;
  // JSON is YAML, too.
  std::ofstream(directory / "rules.yml") << nlohmann::json{{"groups", {group}}};
  CHECK(PromtoolAccepts("check rules", directory / "rules.yml"));
}

TEST_CASE("the dashboard uses only metrics that exist, and has panels for all parts") {
  const auto dashboard = nlohmann::json::parse(ReadWhole(kDashboard));
  Names used;
  Names titles;
  for (const auto& panel : dashboard.at("panels")) {
    titles.insert(panel.at("title").get<std::string>());
    REQUIRE_FALSE(panel.at("targets").empty());
    for (const auto& target : panel.at("targets")) {
      const std::string expression = target.at("expr");
      const Names names = Find(expression, "(siltfs_[a-z0-9_]+)");
      INFO(expression);
      CHECK_FALSE(names.empty());
      // Each metric is limited to the stores that the user has chosen.
      CHECK(
          Missing(names, Find(expression, "(siltfs_[a-z0-9_]+)\\{store=~\"\\$store\"\\}")).empty());
      used.insert(names.begin(), names.end());
    }
  }
  CHECK(Missing(used, AllMetrics()).empty());
  CHECK(Missing({"Space of the store", "Savings", "Damage", "Entries of the index", "Backlog"},
                titles)
            .empty());
}

}  // namespace
}  // namespace siltfs::testing
