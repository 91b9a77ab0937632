// siltfs scrub
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "fs/control/scrub_json.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/size_text.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/hooks.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct ScrubArguments {
  std::string place;
  bool json = false;
  bool quiet = false;
};

// Damage that a mount or an earlier scrub has found is not reported again.
void RunHooksFor(const StoreHealth& health, const std::string& store, Surroundings& surroundings) {
  if (health.found_damaged_blocks == 0 || !HasHooks()) return;
  const HookEvent event{.event = "damage",
                        .store = store,
                        .count = health.found_damaged_blocks,
                        .message = DamageMessage(health.found_damaged_blocks)};
  RunHooks(event, kHookTime, [&](const std::string& sentence) { Say(surroundings, sentence); });
}

MaintenanceRun Verification(const std::string& store, ScrubMode mode) {
  return {
      .question = "scrub",
      .job = "scrub",
      .afterwards = "nothing is lost, and the next siltfs scrub goes on at this place",
      .run = [store,
              mode](StoreMaintenance& maintenance) { return ScrubStore(maintenance, store, mode); },
      .interrupt = [](StoreMaintenance& maintenance) { maintenance.InterruptScrub(); },
      .activity = [](const StoreActivityReport& report) { return report.scrub; }};
}

Result<Json> ScrubUnmounted(const std::string& store, LongCommand& command,
                            Surroundings& surroundings) {
  FileSystemOptions options;
  options.report = [&](const Notice& finding) {
    command.Print([&] { Say(surroundings, finding.sentence); });
  };
  MaintenanceRun run = Verification(store, ScrubMode::kFull);
  run.at_end = [&](StoreMaintenance& maintenance) {
    RunHooksFor(maintenance.GetHealth(), store, surroundings);
  };
  return RunUnmounted(surroundings.env, store, std::move(options), run, command);
}

Result<Json> Scrub(const ScrubArguments& arguments, LongCommand& command,
                   Surroundings& surroundings) {
  SILTFS_ASSIGN_OR_RETURN(const control::DaemonAddress address, AddressAt(arguments.place));
  auto mounted = RunMounted(address, Verification(address.store, ScrubMode::kGentle), command);
  const bool is_mounted =
      !mounted.status().Is(StatusCode::kNotFound) && !mounted.status().Is(StatusCode::kStale);
  if (is_mounted) return mounted;
  auto outcome = OpenWhenFree(address.store,
                              [&] { return ScrubUnmounted(address.store, command, surroundings); });
  if (outcome.ok()) return outcome;
  return ExplainReadOnlyMedium(ExplainLock(std::move(outcome).status(), address.store),
                               address.store,
                               "scrub records damage in the store; siltfs fsck --data verifies the "
                               "same and writes nothing");
}

std::string Format(const Json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  std::string text =
      fmt::format("{} chunks in {} blocks of {} segments verified, {} read; ", number("chunks"),
                  number("blocks"), number("segments"), FormatSize(number("bytes")));
  if (ReportsDamage(outcome)) {
    text += fmt::format(
        "{} chunks in {} blocks and {} footers are damaged, {} files cannot be "
        "read as a whole",
        number("damaged_chunks"), number("damaged_blocks"), number("damaged_footers"),
        number("damaged_files"));
  } else {
    text += "nothing is damaged";
  }
  if (!outcome.at("complete").get<bool>()) text += "; interrupted, the next scrub continues it";
  return text + "\n";
}

ExitCode RunScrub(const ScrubArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "scrub", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const Result<Json> outcome = Scrub(arguments, **command, surroundings);
  (*command)->End();
  if (!outcome.ok()) return Fail(surroundings, outcome.status());
  if (arguments.json) {
    PrintJson(surroundings, *outcome);
  } else {
    surroundings.out << Format(*outcome) << std::flush;
  }
  if (ReportsDamage(*outcome)) return ExitCode::kDamaged;
  return outcome->at("complete").get<bool>() ? ExitCode::kDone : ExitCode::kInterrupted;
}

}  // namespace

std::function<ExitCode()> ConfigureScrub(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ScrubArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunScrub(*arguments, surroundings); };
}

}  // namespace siltfs
