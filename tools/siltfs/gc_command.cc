// siltfs gc
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "fs/control/gc_json.h"
#include "store/base/size_text.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct GcArguments {
  std::string place;
  bool dry_run = false;
  bool json = false;
  bool quiet = false;
};

MaintenanceRun Collection(const std::string& store, bool dry_run) {
  return {.question = dry_run ? "gc dry run" : "gc",
          .job = "gc",
          .afterwards = "nothing is lost, and the next siltfs gc begins again with what is left",
          .run =
              [store, dry_run](StoreMaintenance& maintenance) {
                return CollectGarbageOf(maintenance, store, dry_run);
              },
          .interrupt = [](StoreMaintenance& maintenance) { maintenance.InterruptCollecting(); },
          .activity = [](const StoreActivityReport& report) { return report.gc; }};
}

Result<Json> Collect(Env& env, const GcArguments& arguments, LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const auto mounted, FindMount(arguments.place));
  if (mounted) return RunMounted(*mounted, Collection(mounted->store, arguments.dry_run), command);
  SILTFS_ASSIGN_OR_RETURN(const std::string store, StoreAt(arguments.place));
  auto outcome = OpenWhenFree(store, [&] {
    return RunUnmounted(env, store, {}, Collection(store, arguments.dry_run), command);
  });
  if (outcome.ok()) return outcome;
  return ExplainReadOnlyMedium(ExplainLock(std::move(outcome).status(), store, "siltfs gc"), store,
                               "siltfs gc recovers the store and writes, also with --dry-run; "
                               "siltfs stat shows the dead bytes as of the last count");
}

std::string Format(const Json& outcome) {
  const auto size = [&](const char* key) { return FormatSize(outcome.at(key).get<uint64_t>()); };
  return fmt::format(
      "{} of {} segments {}, {} freed ({} removed, {} copied); {} of dead data {}, {} damaged "
      "segments not changed\n",
      outcome.at("segments_removed").get<uint64_t>(),
      outcome.at("segments_checked").get<uint64_t>(),
      outcome.at("dry_run").get<bool>() ? "would be removed" : "removed", size("bytes_freed"),
      size("bytes_removed"), size("bytes_copied"), size("dead_bytes"),
      outcome.at("dry_run").get<bool>() ? "would stay" : "stay",
      outcome.at("segments_left").get<uint64_t>());
}

ExitCode RunGc(const GcArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "gc", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const Result<Json> outcome = Collect(surroundings.env, arguments, **command);
  return EndRun(surroundings, **command, outcome, arguments.json, Format);
}

}  // namespace

std::function<ExitCode()> ConfigureGc(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<GcArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_flag("--dry-run", arguments->dry_run, "Only print how much would be freed");
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunGc(*arguments, surroundings); };
}

}  // namespace siltfs
