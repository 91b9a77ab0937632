// siltfs stat
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "fs/bucket/store_bucket.h"
#include "fs/control/stats_check.h"
#include "fs/control/stats_json.h"
#include "fs/open/store_stats.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/stat_report.h"
#include "tools/siltfs/statistics_command.h"
#include "tools/siltfs/store_bucket_report.h"
#include "tools/siltfs/watch_command.h"

namespace siltfs {
namespace {

constexpr const char* kPlace = "STORE|MOUNTPOINT";
constexpr const char* kWatch = "--watch";
constexpr const char* kDefaultInterval = "1";

Result<nlohmann::json> ReadStats(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const auto bucket, StoreBucket::Open(env, store, {}));
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats,
                          bucket == nullptr
                              ? ReadStoreStats(env, store)
                              : ReadStoreStats(env, store, &bucket->segments(), bucket->Layer()));
  nlohmann::json document = ToJson(stats, store, std::nullopt);
  if (bucket != nullptr) document["bucket"] = ToJson(bucket->Stats());
  return document;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

struct WatchArguments {
  std::string place;
  std::string interval;
};

// The value of --watch may be missing. Then CLI11 takes the next argument, which is the place.
WatchArguments Sort(const CLI::Option& place, std::string interval) {
  WatchArguments sorted{.place = place.count() > 0 ? place.as<std::string>() : std::string(),
                        .interval = std::move(interval)};
  if (sorted.place.empty() && !IsNumber(sorted.interval)) {
    sorted.place = std::exchange(sorted.interval, kDefaultInterval);
  }
  return sorted;
}

ExitCode Watch(const WatchArguments& arguments, Surroundings& surroundings) {
  const auto interval = ParseWatchInterval(arguments.interval);
  if (!interval.ok()) return Fail(surroundings, ExitCode::kUsage, interval.status().ToString());
  const auto address = FindStatisticsStore(surroundings.env, arguments.place);
  if (!address.ok()) return Fail(surroundings, address.status());
  return WatchStore(*address, *interval, surroundings.json, surroundings);
}

}  // namespace

std::function<ExitCode()> ConfigureStat(CLI::App& app, Surroundings& surroundings) {
  const auto format = [&surroundings](const nlohmann::json& statistics) {
    const double now = static_cast<double>(surroundings.env.NowNanoseconds()) / 1e9;
    return FormatStatReport(statistics, StyleOfOut(surroundings), now);
  };
  const auto show = ConfigureStatistics(
      app, surroundings,
      {.question = "stat", .read = ReadStats, .format = format, .check = CheckStats});
  auto interval = std::make_shared<std::string>();
  CLI::Option* const place = app.get_option(kPlace);
  place->required(false);  // `Sort` may find it elsewhere
  CLI::Option* const watch =
      app.add_option(
             kWatch, *interval,
             "Show what the mounted store is doing, again after each number of seconds (1), "
             "until it is unmounted; with --json, one document a line")
          ->type_name("[SECONDS]")
          ->expected(0, 1);
  return [show, interval, place, watch, &surroundings] {
    WatchArguments arguments = Sort(*place, *interval);
    if (arguments.interval.empty()) arguments.interval = kDefaultInterval;
    if (arguments.place.empty()) {
      return Fail(surroundings, ExitCode::kUsage,
                  "STORE|MOUNTPOINT is required (try siltfs stat --help)");
    }
    if (watch->count() == 0) return show();
    return Watch(arguments, surroundings);
  };
}

}  // namespace siltfs
