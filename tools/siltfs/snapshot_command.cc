// siltfs snapshot: its subcommands, but for prune (snapshot_prune_command.cc).
#include "tools/siltfs/snapshot_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string place;
  std::string name;
  std::string new_name;
  std::vector<std::string> names;
  bool json = false;
};

std::string Line(const Json& snapshot) {
  return fmt::format("{}  {:>9} files  {:>9}  commit {:<8} {}\n",
                     snapshot.at("time").get<std::string>(), snapshot.at("files").get<uint64_t>(),
                     FormatSize(snapshot.at("logical_bytes").get<uint64_t>()),
                     snapshot.at("commit").get<uint64_t>(),
                     Printable(snapshot.at("name").get<std::string>()));
}

ExitCode Print(Surroundings& surroundings, const Arguments& arguments, const Result<Json>& outcome,
               const std::string& text) {
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

// Adds the options that all subcommands have.
std::shared_ptr<Arguments> AddCommon(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  return arguments;
}

std::function<ExitCode()> ConfigureCreate(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The name of the new snapshot")->required();
  return [arguments, &surroundings] {
    const auto made =
        WithSnapshots(surroundings.env, arguments->place, SnapshotAccess::kChange,
                      [&](SnapshotPlace& place) -> Result<Json> {
                        SILTFS_RETURN_IF_ERROR(place.Sync());
                        return place.Run({{"action", "create"}, {"name", arguments->name}});
                      });
    return Print(surroundings, *arguments, made, made.ok() ? Line(*made) : "");
  };
}

std::function<ExitCode()> ConfigureList(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  return [arguments, &surroundings] {
    const auto listed = WithSnapshots(surroundings.env, arguments->place, SnapshotAccess::kRead,
                                      [&](SnapshotPlace& place) {
                                        return place.Run({{"action", "list"}});
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
  return [arguments, &surroundings] {
    const auto found = WithSnapshots(
        surroundings.env, arguments->place, SnapshotAccess::kRead, [&](SnapshotPlace& place) {
          return place.Run({{"action", "show"}, {"name", arguments->name}});
        });
    return Print(surroundings, *arguments, found, found.ok() ? Line(*found) : "");
  };
}

std::function<ExitCode()> ConfigureRename(CLI::App& app, Surroundings& surroundings) {
  auto arguments = AddCommon(app);
  app.add_option("NAME", arguments->name, "The snapshot")->required();
  app.add_option("NEW_NAME", arguments->new_name, "Its new name")->required();
  return [arguments, &surroundings] {
    const auto renamed = WithSnapshots(
        surroundings.env, arguments->place, SnapshotAccess::kChange, [&](SnapshotPlace& place) {
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
        surroundings.env, arguments->place, SnapshotAccess::kChange,
        [&](SnapshotPlace& place) -> Result<Json> {
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
