// siltfs settle
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "fs/control/client.h"
#include "fs/control/recompression_json.h"
#include "store/base/size_text.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/maintenance_run.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct SettleArguments {
  std::string place;
  bool json = false;
  bool quiet = false;
};

MaintenanceRun Recompression(const std::string& store) {
  return {
      .question = "settle",
      .job = "recompression",
      .afterwards =
          "nothing is lost, and the next siltfs settle goes on with the segments that "
          "are left",
      .run = [store](StoreMaintenance& maintenance) { return RecompressStore(maintenance, store); },
      .interrupt = [](StoreMaintenance& maintenance) { maintenance.InterruptRecompression(); },
      .activity = [](const StoreActivityReport& report) { return report.recompression; }};
}

Result<Json> Settle(const SettleArguments& arguments, Env& env, LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(const control::DaemonAddress address, AddressAt(arguments.place));
  const std::string& store = address.store;
  // The store may be mounted or unmounted after the daemon was asked and before the store is
  // opened. So both steps are tried twice.
  for (int attempt = 0;; ++attempt) {
    auto mounted = RunMounted(address, Recompression(store), command);
    if (mounted.ok() || !control::IsGone(mounted.status())) return mounted;
    auto outcome = OpenWhenFree(
        store, [&] { return RunUnmounted(env, store, {}, Recompression(store), command); });
    if (outcome.ok()) return outcome;
    if (attempt > 0 || !outcome.status().Is(StatusCode::kInUse)) {
      return ExplainReadOnlyMedium(ExplainLock(std::move(outcome).status(), store), store,
                                   "settle rewrites segments and needs a writable one");
    }
  }
}

std::string Format(const Json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  const std::string deltas =
      number("delta_chunks") == 0
          ? std::string()
          : fmt::format("; {} chunks became deltas, which saves {}", number("delta_chunks"),
                        FormatSize(number("delta_saved_bytes")));
  return fmt::format(
      "{} segments recompressed, {} kept because this saves nothing, {} could not be recompressed: "
      "{} became {}; {} await recompression{}\n",
      number("segments_rewritten"), number("segments_kept"), number("segments_left"),
      FormatSize(number("bytes_before")), FormatSize(number("bytes_after")),
      FormatSize(number("awaiting_recompression_bytes")), deltas);
}

ExitCode RunSettle(const SettleArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "settle", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const Result<Json> outcome = Settle(arguments, surroundings.env, **command);
  return EndRun(surroundings, **command, outcome, arguments.json, Format);
}

}  // namespace

std::function<ExitCode()> ConfigureSettle(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<SettleArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "The store's directory, or where it is mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of text");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunSettle(*arguments, surroundings); };
}

}  // namespace siltfs
