// siltfs snapshot: its subcommands, but for diff (snapshot_diff_command.cc) and prune
// (snapshot_prune_command.cc).
#include "tools/siltfs/snapshot_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "fs/control/snapshot_json.h"
#include "fs/interface/snapshots.h"
#include "store/base/size_text.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct SnapshotArguments {
  std::string place;
  std::string name;
  std::string new_name;
  std::vector<std::string> names;
  bool no_sizes = false;
  bool json = false;
  bool quiet = false;
};

std::string Line(const Json& snapshot) {
  std::string sizes;
  if (snapshot.contains("new_bytes")) {
    sizes = fmt::format("  new {:>9}  frees {:>9}",
                        FormatSize(snapshot.at("new_bytes").get<uint64_t>()),
                        FormatSize(snapshot.at("freed_bytes").get<uint64_t>()));
  }
  return fmt::format("{}  {:>9} files  {:>9}{}  commit {:<8} {}\n",
                     snapshot.at("time").get<std::string>(), snapshot.at("files").get<uint64_t>(),
                     FormatSize(snapshot.at("logical_bytes").get<uint64_t>()), sizes,
                     snapshot.at("commit").get<uint64_t>(),
                     Printable(snapshot.at("name").get<std::string>()));
}

ExitCode Print(Surroundings& surroundings, const SnapshotArguments& arguments,
               const Result<Json>& outcome, const std::string& text) {
  if (!outcome.ok()) return Fail(surroundings, outcome.status());
  if (arguments.json) {
    PrintJson(surroundings, *outcome);
  } else {
    surroundings.out << text << std::flush;
  }
  return ExitCode::kDone;
}

std::vector<std::string> WithoutRepetitions(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::ranges::find(once, name) == once.end()) once.push_back(name);
  }
  return once;
}

// Checks a name before a store is opened for writing, which changes it.
Status CheckNewName(const std::string& name) {
  SILTFS_RETURN_IF_ERROR(CheckSnapshotName(name));
  return CheckSnapshotArguments(name);
}

SnapshotUse Use(const SnapshotArguments& arguments, SnapshotAccess access, const char* command,
                const char* afterwards) {
  return {.place = arguments.place,
          .access = access,
          .command = command,
          .afterwards = afterwards,
          .quiet = arguments.quiet};
}

// Adds the options that all subcommands have.
std::shared_ptr<SnapshotArguments> AddCommon(CLI::App& app) {
  auto arguments = std::make_shared<SnapshotArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return arguments;
}

void AddNoSizes(CLI::App& app, SnapshotArguments& arguments) {
  app.add_flag("--no-sizes", arguments.no_sizes,
               "Do not count new and freed bytes, which takes a walk through all metadata");
}

std::function<ExitCode()> ConfigureCreate(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The name of the new snapshot")->required();
  return [arguments, &surroundings] {
    const Status valid = CheckNewName(arguments->name);
    if (!valid.ok()) return Fail(surroundings, valid);
    const auto made =
        WithSnapshots(surroundings,
                      Use(*arguments, SnapshotAccess::kChange, "snapshot create",
                          "there is no new snapshot, or a complete one"),
                      [&](SnapshotPlace& place, LongCommand&) -> Result<Json> {
                        SILTFS_RETURN_IF_ERROR(place.Sync());
                        return place.Run({{"action", "create"}, {"name", arguments->name}});
                      });
    return Print(surroundings, *arguments, made, made.ok() ? Line(*made) : "");
  };
}

std::function<ExitCode()> ConfigureList(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  AddNoSizes(app, *arguments);
  return [arguments, &surroundings] {
    const auto listed = WithSnapshots(
        surroundings,
        Use(*arguments, SnapshotAccess::kRead, "snapshot list", "nothing has changed"),
        [&](SnapshotPlace& place, LongCommand&) {
          return place.Run({{"action", "list"}, {"sizes", !arguments->no_sizes}});
        });
    std::string text;
    if (listed.ok()) {
      for (const Json& snapshot : listed->at("snapshots")) text += Line(snapshot);
    }
    return Print(surroundings, *arguments, listed, text);
  };
}

std::function<ExitCode()> ConfigureShow(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The snapshot")->required();
  AddNoSizes(app, *arguments);
  return [arguments, &surroundings] {
    const auto found = WithSnapshots(
        surroundings,
        Use(*arguments, SnapshotAccess::kRead, "snapshot show", "nothing has changed"),
        [&](SnapshotPlace& place, LongCommand&) {
          return place.Run(
              {{"action", "show"}, {"name", arguments->name}, {"sizes", !arguments->no_sizes}});
        });
    return Print(surroundings, *arguments, found, found.ok() ? Line(*found) : "");
  };
}

std::function<ExitCode()> ConfigureRename(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The snapshot")->required();
  app.add_option("NEW_NAME", arguments->new_name, "Its new name")->required();
  return [arguments, &surroundings] {
    const Status valid = CheckNewName(arguments->new_name);
    if (!valid.ok()) return Fail(surroundings, valid);
    const auto renamed = WithSnapshots(
        surroundings,
        Use(*arguments, SnapshotAccess::kChange, "snapshot rename",
            "the snapshot has its old name or its new one"),
        [&](SnapshotPlace& place, LongCommand&) {
          return place.Run(
              {{"action", "rename"}, {"name", arguments->name}, {"new_name", arguments->new_name}});
        });
    return Print(surroundings, *arguments, renamed, renamed.ok() ? Line(*renamed) : "");
  };
}

std::function<ExitCode()> ConfigureDelete(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->names, "The snapshots")->required();
  return [arguments, &surroundings] {
    const auto names = WithoutRepetitions(arguments->names);
    const auto deleted = WithSnapshots(
        surroundings,
        Use(*arguments, SnapshotAccess::kChange, "snapshot delete",
            "the snapshots that siltfs snapshot list still shows are whole, and the space of the "
            "others is freed later"),
        [&](SnapshotPlace& place, LongCommand&) -> Result<Json> {
          // A wrong name must not leave half of the work done.
          for (const std::string& name : names) {
            SILTFS_ASSIGN_OR_RETURN(const Json found,
                                    place.Run({{"action", "show"}, {"name", name}}));
            if (!found.value("mounted", false)) continue;
            return Status(StatusCode::kAborted,
                          fmt::format("the snapshot \"{}\" is mounted; unmount it before it is "
                                      "deleted",
                                      name));
          }
          Json done = Json::array();
          for (const std::string& name : names) {
            SILTFS_ASSIGN_OR_RETURN(Json one, place.Run({{"action", "delete"}, {"name", name}}));
            done.push_back(std::move(one));
          }
          return Json{{"deleted", std::move(done)}};
        });
    return Print(surroundings, *arguments, deleted, "");
  };
}

std::string NameOfKept() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("before-rollback-{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(now));
}

std::function<ExitCode()> ConfigureRollback(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The snapshot to go back to")->required();
  app.add_option("--keep-as", arguments->new_name,
                 "The name of the snapshot that keeps the present state; by default "
                 "before-rollback- and the time");
  return [arguments, &surroundings] {
    const std::string kept =
        arguments->new_name.empty() ? NameOfKept() : std::string(arguments->new_name);
    const Status valid = CheckNewName(kept);
    if (!valid.ok()) return Fail(surroundings, valid);
    const auto done = WithSnapshots(
        surroundings,
        Use(*arguments, SnapshotAccess::kChange, "snapshot rollback", "no file has changed"),
        [&](SnapshotPlace& place, LongCommand&) -> Result<Json> {
          SILTFS_RETURN_IF_ERROR(place.Sync());
          return place.Run({{"action", "rollback"}, {"name", arguments->name}, {"keep_as", kept}});
        });
    const std::string text =
        fmt::format("The state before the rollback is kept as {}.\n", Printable(kept));
    return Print(surroundings, *arguments, done, text);
  };
}

struct Subcommand {
  const char* name;
  const char* description;
  ConfigureCommand configure;
};

constexpr std::array kSubcommands = {
    Subcommand{"create", "Keep the present state of the store under a name", ConfigureCreate},
    Subcommand{"list", "List all snapshots", ConfigureList},
    Subcommand{"show", "Show one snapshot", ConfigureShow},
    Subcommand{"rename", "Give a snapshot another name", ConfigureRename},
    Subcommand{"delete", "Delete snapshots", ConfigureDelete},
    Subcommand{"diff", "List the paths that differ between two snapshots", ConfigureSnapshotDiff},
    Subcommand{"rollback", "Change all files back to what they are in a snapshot",
               ConfigureRollback},
    Subcommand{"prune", "Delete old snapshots by rules", ConfigureSnapshotPrune},
};

}  // namespace

std::function<ExitCode()> ConfigureSnapshot(CLI::App& app, Surroundings& surroundings) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<ExitCode()>>> runs;
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* made = app.add_subcommand(subcommand.name, subcommand.description);
    made->set_help_flag("-h,--help", "Print this help and exit");
    runs.emplace_back(made, subcommand.configure(*made, surroundings));
  }
  return [runs] {
    for (const auto& [subcommand, run] : runs) {
      if (subcommand->parsed()) return run();
    }
    return ExitCode::kUsage;
  };
}

}  // namespace siltfs
