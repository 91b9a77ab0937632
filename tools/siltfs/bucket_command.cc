// siltfs bucket: its subcommands, one file each.
#include "tools/siltfs/bucket_command.h"

#include <CLI/CLI.hpp>
#include <array>
#include <utility>
#include <vector>

namespace siltfs {
namespace {

struct Subcommand {
  const char* name;
  const char* description;
  std::function<int()> (*configure)(CLI::App& app, Surroundings& surroundings);
};

template <auto configure>
std::function<int()> ConfigureNumbered(CLI::App& app, Surroundings& surroundings) {
  return [run = configure(app, surroundings)] { return static_cast<int>(run()); };
}

constexpr std::array kSubcommands = {
    Subcommand{"push", "Upload what a bucket lacks, or move a store's segments to a bucket",
               ConfigureNumbered<ConfigureBucketPush>},
    Subcommand{"pull", "Move the segments of a store from its bucket to its directory",
               ConfigureNumbered<ConfigureBucketPull>},
    Subcommand{"verify", "Compare the objects of a bucket with the store's metadata",
               ConfigureNumbered<ConfigureBucketVerify>},
};

}  // namespace

std::function<int()> ConfigureBucket(CLI::App& app, Surroundings& surroundings) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<int()>>> runs;
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* made = app.add_subcommand(subcommand.name, subcommand.description);
    made->set_help_flag("-h,--help", "Print this help and exit");
    runs.emplace_back(made, subcommand.configure(*made, surroundings));
  }
  return [runs] {
    for (const auto& [subcommand, run] : runs) {
      if (subcommand->parsed()) return run();
    }
    return static_cast<int>(ExitCode::kUsage);
  };
}

}  // namespace siltfs
