// siltfs check-health
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>

#include "fs/control/stats_check.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/health.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/monitored_store.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

constexpr const char* kDefaultBacklog = "100G";

struct CheckHealthArguments {
  std::string place;
  HealthLimits limits;
  std::string backlog = kDefaultBacklog;
  uint64_t timeout_seconds = 10;
  bool json = false;
};

HealthState Print(Surroundings& surroundings, bool json, const HealthReport& report) {
  if (json) {
    PrintJson(surroundings, HealthToJson(report));
  } else {
    surroundings.out << FormatHealth(report) << std::flush;
  }
  return report.state();
}

HealthState FailUsage(Surroundings& surroundings, std::string_view sentence) {
  if (!surroundings.json) surroundings.out << FormatUnknown(sentence);
  SayFailure(surroundings, sentence, nlohmann::json::object(), ExitCode::kUsage);
  return HealthState::kUnknown;
}

Status CheckPercent(std::string_view option, uint64_t percent) {
  if (percent <= 100) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: {} is more than 100 percent", option, percent));
}

// CLI11 accepts "-1" as an unsigned number.
std::string CheckWhole(const std::string& text) {
  const bool whole =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return whole ? "" : fmt::format("\"{}\" is not a number", text);
}

// Completes the limits, and checks their ranges.
Status CheckLimits(CheckHealthArguments& arguments) {
  HealthLimits& limits = arguments.limits;
  SILTFS_RETURN_IF_ERROR(CheckPercent("--full", limits.full_percent));
  SILTFS_RETURN_IF_ERROR(CheckPercent("--nearly-full", limits.nearly_full_percent));
  SILTFS_RETURN_IF_ERROR(CheckPercent("--dead", limits.dead_percent));
  if (limits.full_percent > 0 && limits.nearly_full_percent > limits.full_percent) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--nearly-full: {} is more than {}, the value of --full",
                              limits.nearly_full_percent, limits.full_percent));
  }
  SILTFS_ASSIGN_OR_RETURN(limits.backlog_bytes, ParseSizeOption("--backlog", arguments.backlog));
  if (arguments.timeout_seconds == 0 || arguments.timeout_seconds > 3600) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("--timeout: {} is not between 1 and 3600", arguments.timeout_seconds));
  }
  return Status::Ok();
}

HealthState RunCheckHealth(CheckHealthArguments& arguments, Surroundings& surroundings) {
  const Status valid = CheckLimits(arguments);
  if (!valid.ok()) return FailUsage(surroundings, valid.ToString());
  const auto address = AddressAt(arguments.place);
  if (!address.ok()) {
    return Print(surroundings, arguments.json,
                 JudgeFailure({.store = arguments.place}, address.status()));
  }
  auto statistics = ReadMonitoredStatistics(
      surroundings.env, *address, {.answer = std::chrono::seconds(arguments.timeout_seconds)});
  if (statistics.ok()) statistics = CheckStats(*std::move(statistics));
  const double now = static_cast<double>(surroundings.env.NowNanoseconds()) / 1e9;
  return Print(surroundings, arguments.json,
               statistics.ok() ? JudgeHealth(*statistics, arguments.limits, now)
                               : JudgeFailure(*address, statistics.status()));
}

}  // namespace

std::function<HealthState()> ConfigureCheckHealth(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<CheckHealthArguments>();
  HealthLimits& limits = arguments->limits;
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_option("--scrub-age", limits.scrub_age_days,
                 "Warn if all data were last verified more than this number of days ago")
      ->type_name("DAYS")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_option("--nearly-full", limits.nearly_full_percent,
                 "Warn if this part of the disk below the store is in use")
      ->type_name("PERCENT")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_option("--full", limits.full_percent,
                 "Critical if this part of the disk below the store is in use")
      ->type_name("PERCENT")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_option("--backlog", arguments->backlog, "Warn if more data than this await recompression")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--dead", limits.dead_percent, "Warn if this part of the stored data is dead")
      ->type_name("PERCENT")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_option("--bucket-lag", limits.bucket_lag_seconds,
                 "Warn if the bucket is behind, or does not answer, for longer than this")
      ->type_name("SECONDS")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_option("--timeout", arguments->timeout_seconds,
                 "How long to wait for the answer of the store's daemon")
      ->type_name("SECONDS")
      ->check(CheckWhole)
      ->capture_default_str();
  app.add_flag("--mounted", limits.must_be_mounted, "Critical if the store is not mounted");
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a line");
  return [arguments, &surroundings] { return RunCheckHealth(*arguments, surroundings); };
}

}  // namespace siltfs
