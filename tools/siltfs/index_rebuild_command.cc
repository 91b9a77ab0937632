// siltfs index rebuild
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "fs/bucket/store_bucket.h"
#include "fs/open/rebuild_index.h"
#include "store/env/process.h"
#include "tools/siltfs/index_command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_holder.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

struct IndexRebuildArguments {
  std::string place;
  bool json = false;
  bool quiet = false;
};

Result<RebuiltIndex> Rebuild(const std::string& store, Surroundings& surroundings,
                             LongCommand& command, ProgressMeter& meter) {
  IndexRebuildOptions options;
  options.store = store;
  options.report = [&](const std::string& sentence) {
    command.Print([&] { Say(surroundings, sentence); });
  };
  options.on_progress = [&](uint64_t done, uint64_t total) {
    meter.Put({"segments", done, total});
  };
  options.interrupted = [&command] { return command.interrupted(); };
  SILTFS_ASSIGN_OR_RETURN(
      const auto bucket,
      StoreBucket::Open(surroundings.env, store, {.interrupted = options.interrupted}));
  if (bucket != nullptr) {
    SILTFS_RETURN_IF_ERROR(bucket->CheckIsLastWriter());
    options.segments = &bucket->segments();
  }
  auto rebuilt = RebuildIndex(surroundings.env, options);
  if (bucket != nullptr) SILTFS_RETURN_IF_ERROR(bucket->EndOpening(rebuilt.status()));
  return rebuilt;
}

// The command must not look at the meter after its end, whatever the outcome is.
Result<RebuiltIndex> RebuildObserved(const std::string& store, Surroundings& surroundings,
                                     LongCommand& command) {
  ProgressMeter meter;
  command.Observe([&meter] { return meter.Now(); });
  auto rebuilt = Rebuild(store, surroundings, command, meter);
  command.Observe({});
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

ExitCode RunIndexRebuild(const IndexRebuildArguments& arguments, Surroundings& surroundings) {
  const Result<std::string> store = StoreAt(arguments.place);
  if (!store.ok()) return Fail(surroundings, store.status());
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "index rebuild", .subject = arguments.place, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  PrepareForStore();
  const auto rebuilt =
      OpenWhenFree(*store, [&] { return RebuildObserved(*store, surroundings, **command); });
  (*command)->End();
  if (!rebuilt.ok()) return Fail(surroundings, ExplainLock(rebuilt.status(), *store));
  Print(*store, *rebuilt, arguments.json, surroundings);
  surroundings.out.flush();
  return rebuilt->damages == 0 ? ExitCode::kDone : ExitCode::kDamaged;
}

}  // namespace

std::function<ExitCode()> ConfigureIndexRebuild(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<IndexRebuildArguments>();
  app.add_option("STORE", arguments->place, "The directory of a store that is not mounted")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document instead of a sentence");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunIndexRebuild(*arguments, surroundings); };
}

}  // namespace siltfs
