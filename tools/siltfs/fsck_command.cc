// siltfs fsck, and fsck.siltfs as fsck(8) calls it: checks, and with -p or -y repairs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <ostream>
#include <thread>

#include "fs/repair/repair_store.h"
#include "store/env/polled_signals.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/fsck_report.h"
#include "tools/siltfs/progress_display.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string store;
  bool no_changes = false;
  bool safe = false;
  bool all = false;
  bool force = false;
  bool data = false;
  bool json = false;
  bool quiet = false;
  int descriptor = 0;
};

unsigned NumberOf(std::string_view phase) {
  constexpr std::array<std::string_view, 4> kPhases = {"metadata", "segments", "index", "contents"};
  return static_cast<unsigned>(std::find(kPhases.begin(), kPhases.end(), phase) - kPhases.begin()) +
         1;
}

// What the check of a repair tells while it goes on, and of what it asks.
CheckOptions MakeCheckOptions(const Arguments& arguments, const std::string& store,
                              ProgressDisplay& display, PolledSignals& signals,
                              Surroundings& surroundings, FindingList& findings) {
  CheckOptions options;
  options.store = store;
  options.data = arguments.data;
  options.threads = std::max(1u, std::thread::hardware_concurrency());
  options.on_finding = [&, json = arguments.json](const Finding& finding) {
    findings.Add(finding);
    if (json) return;
    display.Clear();
    surroundings.out << FormatFinding(finding);
  };
  options.on_progress = [&](const CheckProgress& progress) {
    display.Show({.number = NumberOf(progress.phase),
                  .name = progress.phase,
                  .done = progress.done,
                  .total = progress.total},
                 signals.TakeStatusRequest());
  };
  options.interrupted = [&signals] { return signals.TerminationRequested(); };
  return options;
}

// A check alone is a repair that repairs nothing.
Result<RepairReport> CheckOnly(Env& env, const CheckOptions& options) {
  RepairReport report;
  SILTFS_ASSIGN_OR_RETURN(report.checked, CheckStore(env, options));
  report.found = report.left = report.checked.findings;
  return report;
}

Result<RepairReport> CheckOrRepair(const Arguments& arguments, Env& env,
                                   const CheckOptions& options) {
  if (!arguments.safe && !arguments.all) return CheckOnly(env, options);
  return RepairStore(
      env, {.check = options, .mode = arguments.all ? RepairMode::kAll : RepairMode::kSafe});
}

// Flushed while signals still wait: after that one may end the process.
void PrintJson(Surroundings& surroundings, const nlohmann::json& document) {
  // Names are bytes, and JSON is UTF-8.
  surroundings.out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                   << std::endl;
}

// The check could not be done, or not to its end.
FsckCode Stop(const Arguments& arguments, const std::string& store, const FindingList& findings,
              const Status& status, Surroundings& surroundings) {
  Fail(surroundings, status);
  if (arguments.json) PrintJson(surroundings, FailureToJson(store, status, findings));
  return ToFsckCode(status);
}

FsckCode Run(const Arguments& arguments, Surroundings& surroundings) {
  if (arguments.descriptor > 0) {
    const Status open = WriteToDescriptor(arguments.descriptor, "");
    if (!open.ok()) {
      Fail(surroundings, ExitCode::kUsage, open.ToString());
      return FsckCode::kUsage;
    }
  }
  FindingList findings;
  // Before any thread is there.
  const auto signals = PolledSignals::Block();
  if (!signals.ok())
    return Stop(arguments, arguments.store, findings, signals.status(), surroundings);
  const Result<std::string> store = StoreAt(arguments.store);
  if (!store.ok()) return Stop(arguments, arguments.store, findings, store.status(), surroundings);
  PrepareForStore();
  ProgressDisplay::Options display_options{
      .command = "fsck", .subject = *store, .quiet = arguments.quiet, .descriptor = std::nullopt};
  if (arguments.descriptor > 0) display_options.descriptor = arguments.descriptor;
  ProgressDisplay display(surroundings, display_options);
  const CheckOptions options =
      MakeCheckOptions(arguments, *store, display, **signals, surroundings, findings);
  const auto report = CheckOrRepair(arguments, surroundings.env, options);
  display.Clear();
  if (!report.ok()) return Stop(arguments, *store, findings, report.status(), surroundings);
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
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE", arguments->store, "The directory of a store that is not mounted")
      ->required();
  CLI::Option* nothing = app.add_flag("-n", arguments->no_changes, "Change nothing, as without");
  CLI::Option* safe = app.add_flag("-p", arguments->safe, "Repair what loses nothing by it");
  app.add_flag("-y", arguments->all, "Repair all that can be, and say what is lost")
      ->excludes(nothing)
      ->excludes(safe);
  safe->excludes(nothing);
  app.add_flag("-f", arguments->force, "Check also what seems clean, as is always done");
  app.add_flag("--data", arguments->data, "Read all data, too, and name every chunk anew");
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a line a finding");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  app.add_option("-C", arguments->descriptor,
                 "Write progress to this descriptor, for fsck(8); 0: as without")
      ->type_name("FD")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()).description(""));
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs
