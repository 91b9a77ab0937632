// siltfs scrub
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <ostream>

#include "fs/control/client.h"
#include "fs/control/scrub_json.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/size_text.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/hooks.h"
#include "tools/siltfs/interruption.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string place;
  bool json = false;
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

// Opens the store, scrubs it, and closes it as an unmount does, even if the scrub failed.
Result<Json> ScrubUnmounted(const std::string& store, Interruption& interruption,
                            Surroundings& surroundings) {
  PrepareForStore();
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  options.report = [&surroundings](const Notice& finding) { Say(surroundings, finding.sentence); };
  options.interrupted = [&interruption] { return interruption.requested(); };
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, FileSystem::Open(surroundings.env, options));
  interruption.OnRequest([&file_system] { file_system->maintenance().InterruptScrub(); });
  auto outcome = ScrubStore(file_system->maintenance(), store, ScrubMode::kFull);
  interruption.OnRequest({});
  RunHooksFor(file_system->maintenance().GetHealth(), store, surroundings);
  const Status closed = file_system->Close();
  if (!outcome.ok()) {
    closed.IgnoreError("the first failure is reported");
    return outcome;
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return outcome;
}

Result<Json> ScrubMounted(const control::DaemonAddress& address, Interruption& interruption) {
  interruption.OnRequest([&address] {
    control::Ask(address, "scrub stop").status().IgnoreError("it is asked again until it ends");
  });
  auto outcome = control::Ask(address, "scrub", control::Patience::WhileItRuns());
  interruption.OnRequest({});
  return outcome;
}

Result<Json> Scrub(const Arguments& arguments, Interruption& interruption,
                   Surroundings& surroundings) {
  SILTFS_ASSIGN_OR_RETURN(const control::DaemonAddress address, AddressAt(arguments.place));
  auto mounted = ScrubMounted(address, interruption);
  const bool is_mounted =
      !mounted.status().Is(StatusCode::kNotFound) && !mounted.status().Is(StatusCode::kStale);
  if (is_mounted) return mounted;
  auto outcome = OpenWhenFree(
      address.store, [&] { return ScrubUnmounted(address.store, interruption, surroundings); });
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

ExitCode Run(const Arguments& arguments, Surroundings& surroundings) {
  const auto signals = TerminationSignals::Block();  // before any thread starts
  if (!signals.ok()) return Fail(surroundings, signals.status());
  Interruption interruption(**signals);
  const Result<Json> outcome = Scrub(arguments, interruption, surroundings);
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
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs
