// The command siltfs fsck, which fsck(8) calls as fsck.siltfs. It checks a store; with -p or -y it
// also repairs the store.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <ostream>
#include <thread>

#include "fs/bucket/store_bucket.h"
#include "fs/repair/repair_store.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/fsck_report.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/progress_display.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct FsckArguments {
  std::string store;
  bool no_changes = false;
  bool safe = false;
  bool all = false;
  bool force = false;
  bool data = false;
  bool json = false;
  bool quiet = false;
  int descriptor = 0;
  bool ignored = false;
};

unsigned NumberOf(std::string_view phase) {
  constexpr std::array<std::string_view, 4> kPhases = {"metadata", "segments", "index", "contents"};
  return static_cast<unsigned>(std::find(kPhases.begin(), kPhases.end(), phase) - kPhases.begin()) +
         1;
}

// Returns the options of a check, with its callbacks for findings, progress and interruption.
// `lines` writes the progress for fsck(8).
CheckOptions MakeCheckOptions(const FsckArguments& arguments, const std::string& store,
                              LongCommand& command, ProgressMeter& meter, ProgressDisplay& lines,
                              Surroundings& surroundings, FindingList& findings) {
  CheckOptions options;
  options.store = store;
  options.data = arguments.data;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.on_finding = [&, json = arguments.json](const Finding& finding) {
    findings.Add(finding);
    if (json) return;
    command.Print([&] { surroundings.out << FormatFinding(finding); });
  };
  options.on_progress = [&](const CheckProgress& progress) {
    meter.Put({progress.phase, progress.done, progress.total});
    lines.Show({.number = NumberOf(progress.phase),
                .name = progress.phase,
                .done = progress.done,
                .total = progress.total},
               /*asked=*/false);
  };
  options.interrupted = [&command] { return !command.Check().ok(); };
  return options;
}

// Runs only a check, and returns its result in the form of a repair that has repaired nothing.
Result<RepairReport> CheckOnly(Env& env, const CheckOptions& options) {
  RepairReport report;
  SILTFS_ASSIGN_OR_RETURN(report.checked, CheckStore(env, options));
  report.found = report.left = report.checked.findings;
  return report;
}

Result<RepairReport> CheckOrRepair(const FsckArguments& arguments, Env& env, CheckOptions options,
                                   LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto bucket,
                          StoreBucket::Open(env, options.store, {.interrupted = [&command] {
                                              return command.interrupted();
                                            }}));
  if (bucket != nullptr) options.segments = &bucket->segments();
  if (!arguments.safe && !arguments.all) {
    auto checked = CheckOnly(env, options);
    if (bucket != nullptr) SILTFS_RETURN_IF_ERROR(bucket->EndOpening(checked.status()));
    return checked;
  }
  // A repair must not take a request that was interrupted for damage.
  if (bucket != nullptr) {
    SILTFS_RETURN_IF_ERROR(bucket->EndOpening(Status::Ok()));
    SILTFS_RETURN_IF_ERROR(bucket->CheckIsLastWriter());
  }
  RepairOptions repair{.check = options,
                       .mode = arguments.all ? RepairMode::kAll : RepairMode::kSafe,
                       .owner = RealOwner()};
  // The owner of the store's directory has usually run mkfs, and by default the user that runs mkfs
  // owns the root directory. So directories that the repair makes get this owner.
  if (const auto owner = OwnerOf(options.store); owner.ok()) repair.owner = *owner;
  return RepairStore(env, repair);
}

// Reports that the check failed or stopped early.
FsckCode Stop(const std::string& store, const FindingList& findings, const Status& status,
              Surroundings& surroundings) {
  SayFailure(surroundings, status.ToString(), DetailsOfFailure(store, findings),
             ExitCodeOf(status));
  return ToFsckCode(status);
}

FsckCode RunFsck(const FsckArguments& arguments, Surroundings& surroundings) {
  if (arguments.descriptor > 0) {
    const Status open = WriteToDescriptor(arguments.descriptor, "");
    if (!open.ok()) {
      Fail(surroundings, ExitCode::kUsage, open.ToString());
      return FsckCode::kUsage;
    }
  }
  FindingList findings;
  const Result<std::string> store = StoreAt(arguments.store);
  if (!store.ok()) return Stop(arguments.store, findings, store.status(), surroundings);
  // umount(8) may return before the daemon has closed the store. Wait for the daemon before signals
  // are blocked, so that a signal can end this process.
  const Status closed = WaitUntilClosed(*store, [&](const std::string& sentence) {
    surroundings.err << fmt::format("siltfs: {}, which is closing the store\n", sentence)
                     << std::flush;
  });
  if (!closed.ok()) return Stop(*store, findings, closed, surroundings);
  const auto command = LongCommand::Begin(
      surroundings, {.command = "fsck", .subject = *store, .quiet = arguments.quiet});
  if (!command.ok()) return Stop(*store, findings, command.status(), surroundings);
  PrepareForStore();
  ProgressMeter meter;
  (*command)->Observe([&meter] { return meter.Now(); });
  ProgressDisplay::Options line_options{
      .command = "fsck", .subject = *store, .quiet = true, .descriptor = std::nullopt};
  if (arguments.descriptor > 0) line_options.descriptor = arguments.descriptor;
  ProgressDisplay lines(surroundings, line_options);
  const CheckOptions options =
      MakeCheckOptions(arguments, *store, **command, meter, lines, surroundings, findings);
  const auto report = OpenWhenFree(
      *store, [&] { return CheckOrRepair(arguments, surroundings.env, options, **command); });
  (*command)->End();
  if (!report.ok()) {
    const std::string_view afterwards =
        arguments.safe || arguments.all
            ? "no readable data is lost, and the next siltfs fsck -y continues the repair"
            : "nothing has changed, and the list of findings is not complete";
    return Stop(*store, findings,
                ExplainInterruption(ExplainLock(report.status(), *store), afterwards),
                surroundings);
  }
  if (arguments.json) {
    PrintJson(surroundings, RepairToJson(*store, *report, arguments.data, findings));
  } else {
    surroundings.out << FormatRepair(*store, *report, arguments.data) << std::flush;
  }
  if (report->left > 0) return FsckCode::kUncorrected;
  return report->found > 0 ? FsckCode::kCorrected : FsckCode::kClean;
}

}  // namespace

std::function<FsckCode()> ConfigureFsck(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<FsckArguments>();
  app.add_option("STORE", arguments->store, "The directory of a store that is not mounted")
      ->required();
  CLI::Option* nothing = app.add_flag("-n", arguments->no_changes, "Change nothing (the default)");
  CLI::Option* safe = app.add_flag("-p,-a", arguments->safe, "Make only repairs that lose no data");
  app.add_flag("-y", arguments->all, "Repair everything repairable, and list lost data")
      ->excludes(nothing)
      ->excludes(safe);
  safe->excludes(nothing);
  app.add_flag("-f", arguments->force, "Check the store even if it is marked clean (always done)");
  app.add_flag("--data", arguments->data, "Read all data, too, and verify every chunk's name");
  app.add_flag("--json", arguments->json,
               "Print one JSON document instead of one line for each finding");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  app.add_option("-C", arguments->descriptor,
                 "Write progress to this descriptor, for fsck(8); 0: no progress")
      ->type_name("FD")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  app.add_flag("-T,-v", arguments->ignored, "Accepted and ignored, for fsck(8)");
  return [arguments, &surroundings] { return RunFsck(*arguments, surroundings); };
}

}  // namespace siltfs
