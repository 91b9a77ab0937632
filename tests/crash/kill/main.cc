// siltfs-killtest; --help describes it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/interruption.h"
#include "tests/crash/kill/kill_test.h"
#include "tests/crash/kill/process.h"
#include "tests/crash/kill/program.h"

namespace siltfs::killtest {
namespace {

struct Arguments {
  KillTestOptions test;
  bool json = false;
};

void Declare(CLI::App& app, Arguments& arguments) {
  KillTestOptions& test = arguments.test;
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.add_option("--rounds", test.rounds, "Number of rounds: load, kill, mount, compare")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}))
      ->capture_default_str();
  app.add_option("--seed", test.seed, "Seed of the writes and of the moments of the kills")
      ->capture_default_str();
  app.add_option("--directory", test.directory,
                 "Directory for the store and the mount: missing or empty; it is kept (default: a "
                 "temporary one)");
  app.add_option("--fill", test.fill_bytes,
                 "Before the rounds, write files of 64 MiB with this total size (K, M, G)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--writers", test.writers, "Number of concurrent writers, of four kinds")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  app.add_option("--siltfs", test.siltfs,
                 "The siltfs to test (default: the one beside this program)");
  app.add_flag("--json", arguments.json, "Print one JSON document");
}

std::string MakeTemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "siltfs-killtest-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw SystemFailure("make a directory like " + name);
  return name;
}

// Makes or checks the directory. Returns whether it is a temporary one.
bool PrepareDirectory(KillTestOptions& options) {
  if (options.directory.empty()) {
    options.directory = MakeTemporaryDirectory();
    return true;
  }
  std::filesystem::create_directories(options.directory);
  if (!std::filesystem::is_empty(options.directory))
    throw Failure(options.directory + ": is not empty");
  options.directory = std::filesystem::canonical(options.directory);
  return false;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

nlohmann::ordered_json ToJson(const KillTestResult& result, const KillTestOptions& options) {
  const std::vector<double>& mounts = result.mount_seconds;
  const double longest = mounts.empty() ? 0 : *std::max_element(mounts.begin(), mounts.end());
  return {{"rounds", result.rounds},
          {"kills", result.kills},
          {"recovery_kills", result.recovery_kills},
          {"clean_unmounts", result.clean_unmounts},
          {"fsck_runs", result.checks},
          {"operations", result.operations},
          {"operations_kept_unasked", result.operations_kept_unasked},
          {"operations_gone", result.operations_gone},
          {"torn_tails", result.torn_tails},
          {"files_verified", result.files_verified},
          {"bytes_verified", result.bytes_verified},
          {"lost", result.losses.size()},
          {"losses", result.losses},
          {"mount_seconds", {{"median", Median(mounts)}, {"max", longest}}},
          {"seed", options.seed}};
}

void Print(const nlohmann::ordered_json& statistics, bool json) {
  if (json) {
    std::cout << statistics.dump(2) << "\n";
    return;
  }
  for (const auto& [name, value] : statistics.items()) {
    if (name == "losses") continue;  // printed with the other messages
    std::cout << name << ": " << value.dump() << "\n";
  }
}

int RunTest(Arguments& arguments) {
  const bool temporary = PrepareDirectory(arguments.test);
  KillTestResult result;
  try {
    result = RunKillTest(arguments.test);
  } catch (const Interrupted&) {
    if (temporary) std::filesystem::remove_all(arguments.test.directory);
    throw;
  }
  Print(ToJson(result, arguments.test), arguments.json);
  for (const std::string& loss : result.losses) fmt::print(stderr, "siltfs-killtest: {}\n", loss);
  if (!result.losses.empty()) {
    fmt::print(stderr, "siltfs-killtest: seed {}; the store is kept in {}\n", arguments.test.seed,
               arguments.test.directory);
    return kFailed;
  }
  if (temporary) std::filesystem::remove_all(arguments.test.directory);
  return kDone;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Repeatedly kills a mounted siltfs with SIGKILL under load, mounts it again, and compares\n"
      "the files with what was written. All synced writes must be there. The other writes must be\n"
      "there up to some moment, and none after it",
      "siltfs-killtest");
  Arguments arguments;
  Declare(app, arguments);
  if (const auto code = Parse(app, argc, argv)) return *code;
  if (arguments.test.siltfs.empty()) {
    arguments.test.siltfs =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("siltfs").string();
  }
  Contain();
  CatchInterruption();
  AdoptOrphans();
  return RunTest(arguments);
}

}  // namespace
}  // namespace siltfs::killtest

int main(int argc, char** argv) {
  return siltfs::killtest::Guard("siltfs-killtest",
                                 [&] { return siltfs::killtest::Main(argc, argv); });
}
