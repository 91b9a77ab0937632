// siltfs-blocktest; --help describes it.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tests/crash/block/block_campaign.h"
#include "tests/crash/block/sqlite_database.h"
#include "tests/crash/kill/failure.h"
#include "tests/crash/kill/interruption.h"
#include "tests/crash/kill/process.h"
#include "tests/crash/kill/program.h"

namespace siltfs::blocktest {
namespace {

constexpr const char* kFooter = R"(
A FUSE file system provides a disk as a file. A loop device on this file holds ext4, xfs or btrfs
with the store. Writers and SQLite work on the mounted store, and every write, discard and flush of
the disk is recorded. The power is then cut at many places of the record: all writes before the last
flush survive, and so does any part of the later writes. After each cut the store is checked,
mounted, and compared with the promises that siltfs made before the cut.

Examples:
  siltfs-blocktest --fs xfs --cuts 2000 --seed 7 --save /var/tmp/found
  siltfs-blocktest --fs ext4 --faults 100
  siltfs-blocktest --cuts 100 --inject segments --stop      # must end with 1

The seed decides the writes and the places of the cuts. Threads and the kernel write at their own
times, so a run cannot be repeated exactly; --save keeps the images of failing disks.
Exit codes: 0 all cuts were legal, 1 some were not, 2 wrong usage, 77 the machine lacks a
requirement, 130 interrupted.)";

struct Arguments {
  CampaignOptions campaign;
  std::string kind = "ext4";
  bool json = false;
};

void Declare(CLI::App& app, Arguments& arguments) {
  CampaignOptions& campaign = arguments.campaign;
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kFooter);
  app.add_option("--fs", arguments.kind, "File system below the store")
      ->check(CLI::IsMember({"ext4", "xfs", "btrfs"}))
      ->capture_default_str();
  app.add_option("--cuts", campaign.cuts, "Number of power cuts")->capture_default_str();
  app.add_option("--cuts-of-a-recording", campaign.cuts_of_a_recording,
                 "Number of cuts for each recorded load")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--faults", campaign.faults,
                 "Instead of cutting the power, make this many runs with failures of the disk");
  app.add_option("--seed", campaign.seed, "Seed of the writes and failures")->capture_default_str();
  app.add_option("--seconds", campaign.most_seconds, "End after about this many seconds");
  app.add_flag("--stop", campaign.stop_at_first, "End with the first illegal cut");
  app.add_option("--inject", campaign.injection, "Make the daemon leave out these syncs")
      ->check(CLI::IsMember({"segments", "index", "metadata", "directories", "mount-directories"}));
  app.add_option("--save", campaign.save, "Keep images of failing disks in this directory")
      ->check(CLI::ExistingDirectory);
  app.add_option("--directory", campaign.directory,
                 "Empty directory for mountpoints and logs (default: a temporary one in /var/tmp)");
  app.add_option("--siltfs", campaign.siltfs,
                 "The siltfs to test (default: the one beside this program)");
  app.add_flag("--json", arguments.json, "Print one JSON document");
}

// Returns the missing requirement, as text; empty if there is none.
std::string FindObstacle(LowerKind kind, const std::string& scratch) {
  if (geteuid() != 0) return "mounting file systems needs the superuser";
  for (const char* const device : {"/dev/fuse", "/dev/loop-control"}) {
    if (access(device, R_OK | W_OK) != 0) return fmt::format("{} cannot be used", device);
  }
  const std::string mkfs = "mkfs." + NameOf(kind);
  if (killtest::Run({mkfs, "-V"}, scratch).code == 127) return mkfs + " is not installed";
  return {};
}

nlohmann::ordered_json ToJson(const CampaignResult& result, const Arguments& arguments) {
  return {{"fs", arguments.kind},
          {"seed", arguments.campaign.seed},
          {"inject", arguments.campaign.injection},
          {"recordings", result.recordings},
          {"cuts", result.cuts},
          {"fault_runs", result.faults},
          {"illegal", result.illegal},
          {"first_illegal", result.first_illegal},
          {"lower_failures", result.lower_failures},
          {"records", result.records},
          {"flushes", result.flushes},
          {"bytes", result.bytes},
          {"operations", result.operations},
          {"syncs", result.syncs},
          {"transactions", result.transactions},
          {"operations_gone", result.operations_gone},
          {"failed_calls", result.failed_calls},
          {"unmounts_that_failed", result.stores_failed},
          {"recording_seconds", result.recording_seconds},
          {"cut_seconds", result.cut_seconds},
          {"problems", result.problems}};
}

int Run(Arguments& arguments) {
  CampaignOptions& campaign = arguments.campaign;
  campaign.kind = arguments.kind == "xfs"     ? LowerKind::kXfs
                  : arguments.kind == "btrfs" ? LowerKind::kBtrfs
                                              : LowerKind::kExt4;
  const bool temporary = campaign.directory.empty();
  if (temporary) {
    std::string name = "/var/tmp/siltfs-blocktest-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw killtest::SystemFailure("make " + name);
    campaign.directory = name;
  }
  const auto clean_up = [&] {
    std::error_code ignored;
    if (temporary) std::filesystem::remove_all(campaign.directory, ignored);
  };
  const std::string obstacle = FindObstacle(campaign.kind, campaign.directory);
  if (!obstacle.empty()) {
    clean_up();
    fmt::print(stderr, "siltfs-blocktest: skipped: {}\n", obstacle);
    return killtest::kSkipped;
  }
  if (!HaveSqlite())
    fmt::print(stderr, "siltfs-blocktest: sqlite3 is not installed; its test is left out\n");
  CampaignResult result;
  try {
    result = RunCampaign(campaign);
  } catch (...) {
    clean_up();
    throw;
  }
  clean_up();
  const nlohmann::ordered_json statistics = ToJson(result, arguments);
  if (arguments.json) {
    std::cout << statistics.dump(2) << "\n";
  } else {
    for (const auto& [name, value] : statistics.items()) {
      if (name != "problems") std::cout << name << ": " << value.dump() << "\n";
    }
  }
  return result.illegal == 0 ? killtest::kDone : killtest::kFailed;
}

int Main(int argc, char** argv) {
  CLI::App app("Cuts the power of a block device, or lets it fail, under a mounted siltfs",
               "siltfs-blocktest");
  Arguments arguments;
  Declare(app, arguments);
  if (const auto code = killtest::Parse(app, argc, argv)) return *code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  if (arguments.campaign.siltfs.empty())
    arguments.campaign.siltfs = (self.parent_path() / "siltfs").string();
  arguments.campaign.shim = SILTFS_DROP_SYNCS_LIBRARY;
  // A write to a program that has ended must not kill this process.
  signal(SIGPIPE, SIG_IGN);
  killtest::Contain();
  // The new process namespace needs its own /proc.
  if (getpid() == 1 && mount("proc", "/proc", "proc", 0, nullptr) != 0)
    throw killtest::SystemFailure("mount /proc");
  killtest::CatchInterruption();
  killtest::AdoptOrphans();
  return Run(arguments);
}

}  // namespace
}  // namespace siltfs::blocktest

int main(int argc, char** argv) {
  return siltfs::killtest::Guard("siltfs-blocktest",
                                 [&] { return siltfs::blocktest::Main(argc, argv); });
}
