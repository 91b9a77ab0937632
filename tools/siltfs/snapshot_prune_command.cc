// siltfs snapshot prune
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/prune_policy.h"
#include "tools/siltfs/snapshot_command.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr int kMostKept = 1'000'000;

struct SnapshotPruneArguments {
  std::string place;
  PrunePolicy policy;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

// The rules count the snapshots of each store that they come from by themselves. Otherwise the
// snapshots of one store would take the places of another one's.
std::vector<std::vector<std::string>> ChooseAmong(const Json& snapshots,
                                                  const PrunePolicy& policy) {
  std::map<std::string, std::vector<size_t>> by_origin;
  for (size_t i = 0; i < snapshots.size(); ++i)
    by_origin[snapshots[i].value("received_from", Json()).dump()].push_back(i);
  std::vector<std::vector<std::string>> kept(snapshots.size());
  for (const auto& [origin, places] : by_origin) {
    std::vector<int64_t> times;
    for (const size_t place : places)
      times.push_back(snapshots[place].at("created").get<int64_t>());
    auto chosen = ChooseKept(times, policy);
    for (size_t i = 0; i < places.size(); ++i) kept[places[i]] = std::move(chosen[i]);
  }
  return kept;
}

Result<Json> Prune(SnapshotPlace& place, const SnapshotPruneArguments& arguments,
                   LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const Json listed, place.Run({{"action", "list"}}));
  const Json& snapshots = listed.at("snapshots");
  const auto kept = ChooseAmong(snapshots, arguments.policy);
  Json outcome = {
      {"kept", Json::array()}, {"deleted", Json::array()}, {"dry_run", arguments.dry_run}};
  for (size_t i = 0; i < snapshots.size(); ++i) {
    Json snapshot = snapshots[i];
    // A mounted snapshot cannot be deleted. A later run deletes it.
    const bool mounted = snapshot.value("mounted", false);
    if (!kept[i].empty() || mounted) {
      snapshot["reasons"] = kept[i];
      if (mounted) snapshot["reasons"].push_back("mounted");
      outcome["kept"].push_back(std::move(snapshot));
      continue;
    }
    SILTFS_RETURN_IF_ERROR(command.Check());
    if (!arguments.dry_run) {
      SILTFS_RETURN_IF_ERROR(
          place.Run({{"action", "delete"}, {"name", snapshot.at("name")}}).status());
    }
    outcome["deleted"].push_back(std::move(snapshot));
  }
  return outcome;
}

std::string Format(const Json& outcome) {
  std::string text;
  const auto add = [&](const Json& snapshot, std::string_view what) {
    text += fmt::format("{:<8} {}  {}", what, snapshot.at("time").get<std::string>(),
                        Printable(snapshot.at("name").get<std::string>()));
    std::string_view between = "  (";
    for (const Json& reason : snapshot.value("reasons", Json::array())) {
      text += fmt::format("{}{}", between, reason.get<std::string>());
      between = ", ";
    }
    text += between == ", " ? ")\n" : "\n";
  };
  for (const Json& snapshot : outcome.at("kept")) add(snapshot, "keep");
  const bool dry_run = outcome.at("dry_run").get<bool>();
  for (const Json& snapshot : outcome.at("deleted")) add(snapshot, dry_run ? "delete" : "deleted");
  return text;
}

ExitCode RunSnapshotPrune(const SnapshotPruneArguments& arguments, Surroundings& surroundings) {
  if (arguments.policy.KeepsNothing()) {
    return Fail(surroundings, ExitCode::kUsage,
                "siltfs snapshot prune would delete all snapshots: give it at least one rule, such "
                "as --keep-last 3");
  }
  const SnapshotAccess access = arguments.dry_run ? SnapshotAccess::kRead : SnapshotAccess::kChange;
  const auto outcome = WithSnapshots(
      surroundings,
      {.place = arguments.place,
       .access = access,
       .command = "snapshot prune",
       .afterwards = "the snapshots that siltfs snapshot list still shows are whole, and the space "
                     "of the others is freed later",
       .quiet = arguments.quiet},
      [&](SnapshotPlace& place, LongCommand& command) { return Prune(place, arguments, command); });
  if (!outcome.ok()) return Fail(surroundings, outcome.status());
  if (arguments.json) {
    PrintJson(surroundings, *outcome);
  } else {
    surroundings.out << Format(*outcome) << std::flush;
  }
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureSnapshotPrune(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<SnapshotPruneArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  PrunePolicy& policy = arguments->policy;
  app.add_option("--keep-last", policy.last, "Keep the newest N snapshots")
      ->type_name("N")
      ->check(CLI::Range(0, kMostKept));
  const auto add = [&app](const char* option, uint64_t& count, const char* period) {
    app.add_option(
           option, count,
           fmt::format("Keep the newest snapshot of each of the newest N {} that have one", period))
        ->type_name("N")
        ->check(CLI::Range(0, kMostKept));
  };
  add("--keep-hourly", policy.hourly, "hours");
  add("--keep-daily", policy.daily, "days");
  add("--keep-weekly", policy.weekly, "weeks");
  add("--keep-monthly", policy.monthly, "months");
  add("--keep-yearly", policy.yearly, "years");
  app.add_flag("--dry-run", arguments->dry_run, "Only print what would be deleted");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunSnapshotPrune(*arguments, surroundings); };
}

}  // namespace siltfs
