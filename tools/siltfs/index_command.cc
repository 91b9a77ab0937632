// siltfs index: its subcommands, one file each.
#include <CLI/CLI.hpp>
#include <array>
#include <utility>
#include <vector>

#include "tools/siltfs/command.h"
#include "tools/siltfs/index_command.h"

namespace siltfs {
namespace {

struct Subcommand {
  const char* name;
  const char* description;
  ConfigureCommand configure;
};

constexpr std::array kSubcommands = {
    Subcommand{"stat", "Show the chunk index and its component stores", ConfigureIndexStat},
    Subcommand{"dump", "Print every entry of the chunk index", ConfigureIndexDump},
    Subcommand{"verify", "Check every page and every entry of the chunk index",
               ConfigureIndexVerify},
    Subcommand{"rebuild", "Rebuild the chunk index from the segments", ConfigureIndexRebuild},
    Subcommand{"plan", "Choose the index's parameters for a machine and predict their cost",
               ConfigureIndexPlan},
};

}  // namespace

std::function<ExitCode()> ConfigureIndex(CLI::App& app, Surroundings& surroundings) {
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
