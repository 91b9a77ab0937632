// siltfs index rebuild
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "fs/open/rebuild_index.h"
#include "store/env/polled_signals.h"
#include "store/env/process.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/progress_display.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct Arguments {
  std::string place;
  bool json = false;
  bool quiet = false;
};

Result<RebuiltIndex> Rebuild(const Arguments& arguments, const std::string& store,
                             PolledSignals& signals, Surroundings& surroundings) {
  ProgressDisplay display(surroundings, {.command = "index rebuild",
                                         .subject = store,
                                         .quiet = arguments.quiet,
                                         .descriptor = std::nullopt});
  IndexRebuildOptions options;
  options.store = store;
  options.report = [&](const std::string& sentence) {
    display.Clear();
    Say(surroundings, sentence);
  };
  options.on_progress = [&](uint64_t done, uint64_t total) {
    display.Show({.number = 1, .name = "segments", .done = done, .total = total},
                 signals.TakeStatusRequest());
  };
  options.interrupted = [&signals] { return signals.TerminationRequested(); };
  auto rebuilt = RebuildIndex(surroundings.env, options);
  display.Clear();
  return rebuilt;
}

void Print(const std::string& store, const RebuiltIndex& rebuilt, bool json,
           Surroundings& surroundings) {
  const double seconds = static_cast<double>(rebuilt.nanoseconds) / 1e9;
  if (!json) {
    surroundings.out << fmt::format("{}: {} chunks of {} segments, {} entries, in {:.3f} s\n",
                                    Printable(store), rebuilt.chunks, rebuilt.segments,
                                    rebuilt.entries, seconds);
    return;
  }
  PrintJson(surroundings, {{"store", store},
                           {"engine", rebuilt.engine},
                           {"segments", rebuilt.segments},
                           {"chunks", rebuilt.chunks},
                           {"entries", rebuilt.entries},
                           {"damages", rebuilt.damages},
                           {"seconds", seconds}});
}

ExitCode Run(const Arguments& arguments, Surroundings& surroundings) {
  // Signals must be blocked before any thread starts.
  const auto signals = PolledSignals::Block();
  if (!signals.ok()) return Fail(surroundings, signals.status());
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  PrepareForStore();
  const auto rebuilt =
      OpenWhenFree(*store, [&] { return Rebuild(arguments, *store, **signals, surroundings); });
  if (!rebuilt.ok()) return Fail(surroundings, ExplainLock(rebuilt.status(), *store));
  Print(*store, *rebuilt, arguments.json, surroundings);
  surroundings.out.flush();
  return rebuilt->damages == 0 ? ExitCode::kDone : ExitCode::kDamaged;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexRebuild(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE", arguments->place, "The directory of a store that is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return Run(*arguments, surroundings); };
}

}  // namespace siltfs
