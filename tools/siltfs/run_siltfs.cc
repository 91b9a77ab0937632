#include "tools/siltfs/run_siltfs.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "tools/siltfs/bucket_command.h"
#include "tools/siltfs/health.h"
#include "tools/siltfs/invocation.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/message_table.h"
#include "tools/siltfs/version.h"

namespace siltfs {
namespace {

// The exit codes of a program for wrong usage, and for failures outside of its commands.
struct FailureCodes {
  int usage;
  int failed;
  bool are_bits = false;   // several may be set
  bool is_plugin = false;  // a monitoring system reads the failure on standard output
};

constexpr FailureCodes kFailureCodes = {static_cast<int>(ExitCode::kUsage),
                                        static_cast<int>(ExitCode::kFailed)};
constexpr FailureCodes kFsckFailureCodes = {static_cast<int>(FsckCode::kUsage),
                                            static_cast<int>(FsckCode::kFailed),
                                            /*are_bits=*/true};
constexpr FailureCodes kMountHelperFailureCodes = {static_cast<int>(MountHelperCode::kUsage),
                                                   static_cast<int>(MountHelperCode::kFailed),
                                                   /*are_bits=*/true};
constexpr FailureCodes kPluginFailureCodes = {static_cast<int>(HealthState::kUnknown),
                                              static_cast<int>(HealthState::kUnknown),
                                              /*are_bits=*/false, /*is_plugin=*/true};
constexpr const char* kMountHelper = "mount.siltfs";
// mount(8) and umount(8) form a helper's name from the type in the mount table. The type there is
// "fuse.siltfs", so they may look for "umount.fuse.siltfs".
constexpr std::string_view kTypePrefix = "fuse.";

struct Command {
  const char* name;
  const char* description;
  std::function<int()> (*configure)(CLI::App& app, Surroundings& surroundings);
  FailureCodes codes = kFailureCodes;
};

// Converts the exit codes of commands, which have different types, to numbers.
template <auto configure>
std::function<int()> ConfigureNumbered(CLI::App& app, Surroundings& surroundings) {
  return [run = configure(app, surroundings)] { return static_cast<int>(run()); };
}

constexpr std::array kCommands = {
    Command{"mkfs", "Make a store", ConfigureNumbered<ConfigureMkfs>},
    Command{"mount", "Mount a store", ConfigureNumbered<ConfigureMount>},
    Command{"umount", "Unmount a store and wait until it is free",
            ConfigureNumbered<ConfigureUmount>},
    Command{"stat", "Show statistics of a store", ConfigureNumbered<ConfigureStat>},
    Command{"tune", "Show or change the parameters of a store", ConfigureNumbered<ConfigureTune>},
    Command{"fsck", "Check a store", ConfigureNumbered<ConfigureFsck>, kFsckFailureCodes},
    Command{"sync", "Make all changes durable", ConfigureNumbered<ConfigureSync>},
    Command{"settle", "Compress stored data again, more densely",
            ConfigureNumbered<ConfigureSettle>},
    Command{"gc", "Free the space of data that no file uses any more",
            ConfigureNumbered<ConfigureGc>},
    Command{"scrub", "Verify all stored data", ConfigureNumbered<ConfigureScrub>},
    Command{"import", "Copy trees of files into a mounted store",
            ConfigureNumbered<ConfigureImport>},
    Command{"export", "Copy a tree of files out of a mounted store",
            ConfigureNumbered<ConfigureExport>},
    Command{"clone", "Copy a file or a tree within a mounted store, without copying data",
            ConfigureNumbered<ConfigureClone>},
    Command{"du", "Show what paths take, and what their removal would free",
            ConfigureNumbered<ConfigureDu>},
    Command{"find-duplicates", "List the largest files that are there several times",
            ConfigureNumbered<ConfigureFindDuplicates>},
    Command{"snapshot", "Keep states of a store under names", ConfigureNumbered<ConfigureSnapshot>},
    Command{"quota", "Limit what directories may hold", ConfigureNumbered<ConfigureQuota>},
    Command{"send", "Write a snapshot as a stream, for another store",
            ConfigureNumbered<ConfigureSend>},
    Command{"receive", "Make a snapshot from a stream", ConfigureNumbered<ConfigureReceive>},
    Command{"list", "List the mounted stores", ConfigureNumbered<ConfigureList>},
    Command{"check-health", "Check a store for a monitoring system such as Nagios",
            ConfigureNumbered<ConfigureCheckHealth>, kPluginFailureCodes},
    Command{"metrics", "Print or serve the statistics of stores for Prometheus",
            ConfigureNumbered<ConfigureMetrics>},
    Command{"report", "Make a page with plots of a store", ConfigureNumbered<ConfigureReport>},
    Command{"explain", "Explain a message by its identifier", ConfigureNumbered<ConfigureExplain>},
    Command{"notify", "Run the hooks for damage, for example as a test",
            ConfigureNumbered<ConfigureNotify>},
    Command{"bucket", "Move a store's segments to a bucket and back, and verify the bucket",
            ConfigureBucket},
    Command{"index", "Show, check, rebuild or plan the chunk index",
            ConfigureNumbered<ConfigureIndex>},
};

constexpr const char* kAbout =
    "siltfs keeps a deduplicating file system in a directory, the store, and mounts it.\n"
    "Sizes take the suffixes K, M, G, T, P and E (powers of 1024), also written KiB, MiB and so "
    "on.\n"
    "\"siltfs help COMMAND\" prints the arguments and options of a command.";

// Returns the program's name: the last part of its path. mount.fuse.siltfs becomes mount.siltfs.
std::string ProgramName(std::string_view path) {
  const size_t slash = path.rfind('/');
  std::string name(slash == std::string_view::npos ? path : path.substr(slash + 1));
  const size_t type = name.find('.');
  if (type != std::string::npos && name.compare(type + 1, kTypePrefix.size(), kTypePrefix) == 0)
    name.erase(type + 1, kTypePrefix.size());
  return name;
}

// Returns the failure codes of the command that the arguments name. The arguments are not parsed
// yet, so only the program's name and the first argument are compared.
FailureCodes CodesOf(std::span<const std::string> arguments) {
  const std::string name = ProgramName(arguments[0]);
  if (name == kMountHelper) return kMountHelperFailureCodes;
  for (const Command& command : kCommands) {
    const bool by_link = name == std::string(command.name) + ".siltfs";
    if (by_link || (arguments.size() > 1 && arguments[1] == command.name)) return command.codes;
  }
  return kFailureCodes;
}

void SetUp(CLI::App& app, const std::string& version_flags) {
  app.set_version_flag(version_flags, std::string("siltfs ") + kVersion,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.option_defaults()->disable_flag_override();  // --json=no is an error
}

// Reports a failure outside of a command's own code.
void SayEarlyFailure(Surroundings& surroundings, const FailureCodes& codes,
                     std::string_view sentence, ExitCode code) {
  if (codes.is_plugin && !surroundings.json) surroundings.out << FormatUnknown(sentence);
  SayFailure(surroundings, sentence, nlohmann::json::object(), code);
}

int FailUsage(Surroundings& surroundings, const FailureCodes& codes, std::string_view sentence) {
  SayEarlyFailure(surroundings, codes, sentence, ExitCode::kUsage);
  return codes.usage;
}

// Parses the arguments. Returns an exit code if the program should end now (help, version, a
// mistake).
std::optional<int> Parse(CLI::App& app, Invocation invocation, const FailureCodes& codes,
                         Surroundings& surroundings) {
  CLI::App& command = *invocation.command;
  std::reverse(invocation.words.begin(), invocation.words.end());  // CLI11 expects them reversed
  try {
    app.parse(std::move(invocation.words));
  } catch (const CLI::Success& wish) {  // help or version
    return app.exit(wish, surroundings.out, surroundings.err);
  } catch (const CLI::ParseError& mistake) {
    return FailUsage(surroundings, codes, ExplainMistake(command, mistake));
  }
  if (const auto empty = FindEmptyArgument(command)) return FailUsage(surroundings, codes, *empty);
  return std::nullopt;
}

// Runs a program with only one command, such as mkfs.siltfs.
template <typename Configure>
int RunAlone(Configure configure, const char* description, const std::string& name,
             std::vector<std::string> words, const FailureCodes& codes,
             Surroundings& surroundings) {
  CLI::App app(description, name);
  SetUp(app, "-V,--version");
  const auto run = configure(app, surroundings);
  const auto code = Parse(app, {std::move(words), &app}, codes, surroundings);
  return code ? *code : run();
}

int RunAll(std::vector<std::string> words, const FailureCodes& codes, Surroundings& surroundings) {
  CLI::App app(kAbout, "siltfs");
  SetUp(app, "-V,-v,--version");
  app.require_subcommand(1);
  std::array<std::function<int()>, kCommands.size()> runs;
  for (size_t i = 0; i < kCommands.size(); ++i) {
    CLI::App* subcommand = app.add_subcommand(kCommands[i].name, kCommands[i].description);
    subcommand->set_help_flag("-h,--help", "Print this help and exit");
    runs[i] = kCommands[i].configure(*subcommand, surroundings);
  }
  auto invocation = ResolveInvocation(app, std::move(words));
  if (!invocation.ok()) return FailUsage(surroundings, codes, invocation.status().ToString());
  if (const auto code = Parse(app, *std::move(invocation), codes, surroundings)) return *code;
  for (size_t i = 0; i < kCommands.size(); ++i) {
    if (app.got_subcommand(kCommands[i].name)) return runs[i]();
  }
  return codes.usage;
}

int Dispatch(const std::string& name, std::vector<std::string> words, const FailureCodes& codes,
             Surroundings& surroundings) {
  if (name == kMountHelper) {
    return RunAlone(ConfigureMountHelper, "Mount a store, as mount(8) asks for it", name,
                    std::move(words), codes, surroundings);
  }
  for (const Command& command : kCommands) {
    if (name == std::string(command.name) + ".siltfs") {
      return RunAlone(command.configure, command.description, name, std::move(words), codes,
                      surroundings);
    }
  }
  return RunAll(std::move(words), codes, surroundings);
}

// Returns the exit code after checking that the output was written. A full disk or a closed
// descriptor makes a command fail.
int CheckOutput(int code, const FailureCodes& codes, Surroundings& surroundings) {
  surroundings.out.flush();
  if (surroundings.out.good()) return code;
  const IdentifiedMessage message = IdentifyFailure(
      fmt::format("standard output: {}", surroundings.why_out_failed ? surroundings.why_out_failed()
                                                                     : "it cannot be written"),
      ExitCode::kFailed);
  Say(surroundings, fmt::format("{} [{}]", message.sentence, message.id));
  if (codes.are_bits) return code | codes.failed;
  return code == 0 ? codes.failed : code;
}

}  // namespace

int RunSiltfs(std::span<const std::string> arguments, Surroundings& surroundings) {
  // A program may be started without any argument, not even its name.
  const std::vector<std::string> named =
      arguments.empty() ? std::vector<std::string>{"siltfs"}
                        : std::vector<std::string>(arguments.begin(), arguments.end());
  const FailureCodes codes = CodesOf(named);
  std::vector<std::string> words(named.begin() + 1, named.end());
  surroundings.json = AsksForJson(words);
  int code = 0;
  try {
    code = Dispatch(ProgramName(named[0]), std::move(words), codes, surroundings);
  } catch (const std::exception& error) {
    code = codes.failed;
    SayEarlyFailure(surroundings, codes, fmt::format("failed unexpectedly: {}", error.what()),
                    ExitCode::kFailed);
  }
  return CheckOutput(code, codes, surroundings);
}

}  // namespace siltfs
