#include "tools/siltfs/run_siltfs.h"

#include <fmt/ostream.h>
#include <CLI/CLI.hpp>

#include <array>
#include <exception>
#include <optional>
#include <ostream>
#include <vector>

#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

// What a command says to the shell where it is not even run.
struct FailureCodes {
  int usage;
  int failed;
};

constexpr FailureCodes kFailureCodes = {static_cast<int>(ExitCode::kUsage),
                                        static_cast<int>(ExitCode::kFailed)};
constexpr FailureCodes kFsckFailureCodes = {static_cast<int>(FsckCode::kUsage),
                                            static_cast<int>(FsckCode::kFailed)};

struct Command {
  const char* name;
  const char* description;
  std::function<int()> (*configure)(CLI::App& app, Surroundings& surroundings);
  FailureCodes codes = kFailureCodes;
};

// Each command has its own kind of exit code; for the shell all are numbers.
template <auto configure>
std::function<int()> ConfigureNumbered(CLI::App& app, Surroundings& surroundings) {
  return [run = configure(app, surroundings)] { return static_cast<int>(run()); };
}

constexpr std::array kCommands = {
    Command{"mkfs", "Make a store", ConfigureNumbered<ConfigureMkfs>},
    Command{"mount", "Mount a store", ConfigureNumbered<ConfigureMount>},
    Command{"umount", "Unmount a store and wait until it is free",
            ConfigureNumbered<ConfigureUmount>},
    Command{"stat", "Show a store's figures", ConfigureNumbered<ConfigureStat>},
    Command{"fsck", "Check a store", ConfigureNumbered<ConfigureFsck>, kFsckFailureCodes},
    Command{"settle", "Recompress densely what was written fast",
            ConfigureNumbered<ConfigureSettle>},
    Command{"gc", "Give back the space of what no file refers to any more",
            ConfigureNumbered<ConfigureGc>},
    Command{"scrub", "Verify all that is stored", ConfigureNumbered<ConfigureScrub>},
    Command{"index", "Plan the chunk index", ConfigureNumbered<ConfigureIndex>},
};

constexpr const char* kAbout =
    "siltfs keeps a deduplicating file system in a directory, the store, and mounts it.\n"
    "Sizes take the suffixes K, M, G and T (powers of 1024).";

std::string_view LastPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Of the command that the arguments ask for, as far as that can be told without parsing them.
FailureCodes CodesOf(std::span<const std::string> arguments) {
  const std::string_view name = LastPart(arguments[0]);
  for (const Command& command : kCommands) {
    const bool by_link = name == std::string(command.name) + ".siltfs";
    if (by_link || (arguments.size() > 1 && arguments[1] == command.name)) return command.codes;
  }
  return kFailureCodes;
}

void SetUp(CLI::App& app) {
  app.set_version_flag("-V,--version", std::string("siltfs ") + kVersion,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

// Parses; a code if that is the end of it (help, version, a mistake).
std::optional<int> Parse(CLI::App& app, std::span<const std::string> arguments, int usage_code,
                         Surroundings& surroundings) {
  // CLI11 takes them without the program's name, last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend() - 1);
  try {
    app.parse(std::move(reversed));
    return std::nullopt;
  } catch (const CLI::Success& wish) {  // help or version
    return app.exit(wish, surroundings.out, surroundings.err);
  } catch (const CLI::ParseError& mistake) {
    fmt::print(surroundings.err, "{}: {} (try {} --help)\n", app.get_name(), mistake.what(),
               app.get_name());
    return usage_code;
  }
}

int RunCommand(const Command& command, const std::string& name,
               std::span<const std::string> arguments, Surroundings& surroundings) {
  CLI::App app(command.description, name);
  SetUp(app);
  const auto run = command.configure(app, surroundings);
  if (const auto code = Parse(app, arguments, command.codes.usage, surroundings)) return *code;
  return run();
}

int RunMountHelper(const std::string& name, std::span<const std::string> arguments,
                   Surroundings& surroundings) {
  CLI::App app("Mount a store, as mount(8) asks for it", name);
  SetUp(app);
  const auto run = ConfigureMountHelper(app, surroundings);
  if (const auto code =
          Parse(app, arguments, static_cast<int>(MountHelperCode::kUsage), surroundings))
    return *code;
  return run();
}

int RunAll(std::span<const std::string> arguments, Surroundings& surroundings) {
  CLI::App app(kAbout, "siltfs");
  SetUp(app);
  app.require_subcommand(1);
  std::array<std::function<int()>, kCommands.size()> runs;
  for (size_t i = 0; i < kCommands.size(); ++i) {
    CLI::App* subcommand = app.add_subcommand(kCommands[i].name, kCommands[i].description);
    subcommand->set_help_flag("-h,--help", "Print this help and exit");
    runs[i] = kCommands[i].configure(*subcommand, surroundings);
  }
  if (const auto code = Parse(app, arguments, CodesOf(arguments).usage, surroundings)) return *code;
  for (size_t i = 0; i < kCommands.size(); ++i) {
    if (app.got_subcommand(kCommands[i].name)) return runs[i]();
  }
  return static_cast<int>(ExitCode::kUsage);
}

int Dispatch(std::span<const std::string> arguments, Surroundings& surroundings) {
  const std::string name(LastPart(arguments[0]));
  if (name == "mount.siltfs") return RunMountHelper(name, arguments, surroundings);
  for (const Command& command : kCommands) {
    if (name == std::string(command.name) + ".siltfs")
      return RunCommand(command, name, arguments, surroundings);
  }
  return RunAll(arguments, surroundings);
}

}  // namespace

int RunSiltfs(std::span<const std::string> arguments, Surroundings& surroundings) {
  try {
    return Dispatch(arguments, surroundings);
  } catch (const std::exception& error) {
    fmt::print(surroundings.err, "siltfs: failed unexpectedly: {}\n", error.what());
    return CodesOf(arguments).failed;
  }
}

ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence) {
  fmt::print(surroundings.err, "siltfs: {}\n", sentence);
  return code;
}

ExitCode Fail(Surroundings& surroundings, const Status& status) {
  return Fail(surroundings, ExitCodeOf(status), status.ToString());
}

}  // namespace siltfs
