// siltfs scrub
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "fs/control/client.h"
#include "fs/control/scrub_json.h"
#include "fs/fuse/size_text.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct Arguments {
  std::string place;
  bool json = false;
};

// Calls `interrupt` for each signal that asks this process to end, while it lives.
class Interruption {
 public:
  Interruption(TerminationSignals& signals, std::function<void()> interrupt)
      : signals_(signals), thread_([this, interrupt = std::move(interrupt)] {
          while (signals_.Wait()) interrupt();
        }) {}
  ~Interruption() {
    signals_.Cancel();
    thread_.join();
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  TerminationSignals& signals_;
  std::thread thread_;
};

// Opened, and closed as by an unmount, whatever came of it.
Result<Json> ScrubUnmounted(const std::string& store, TerminationSignals& signals,
                            Surroundings& surroundings) {
  PrepareForStore();
  FileSystemOptions options;
  options.store = store;
  options.keep_reserve = true;
  options.report = [&surroundings](const std::string& finding) {
    surroundings.err << fmt::format("siltfs: {}\n", finding);
  };
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, FileSystem::Open(surroundings.env, options));
  std::optional<Result<Json>> outcome;
  {
    const Interruption interruption(signals, [&] { file_system->InterruptScrub(); });
    outcome.emplace(ScrubStore(*file_system, store, ScrubMode::kFull));
  }
  const Status closed = file_system->Close();
  if (!outcome->ok()) {
    closed.IgnoreError("the first failure is what is told");
    return *std::move(outcome);
  }
  SILTFS_RETURN_IF_ERROR(closed);
  return *std::move(outcome);
}

Result<Json> ScrubMounted(const std::string& store, TerminationSignals& signals) {
  const Interruption interruption(signals, [&] {
    control::Ask(store, "scrub stop").status().IgnoreError("then it has ended, or goes on");
  });
  return control::Ask(store, "scrub");
}

Result<Json> Scrub(const Arguments& arguments, TerminationSignals& signals,
                   Surroundings& surroundings) {
  SILTFS_ASSIGN_OR_RETURN(const std::string store, StoreAt(arguments.place));
  auto mounted = ScrubMounted(store, signals);
  if (!mounted.status().Is(StatusCode::kNotFound)) return mounted;
  return ScrubUnmounted(store, signals, surroundings);
}

std::string Format(const Json& outcome) {
  const auto number = [&](const char* key) { return outcome.at(key).get<uint64_t>(); };
  std::string text =
      fmt::format("{} chunks in {} blocks of {} segments verified, {} read; ", number("chunks"),
                  number("blocks"), number("segments"), FormatSize(number("bytes")));
  if (ToldOfDamage(outcome)) {
    text += fmt::format(
        "{} chunks in {} blocks and {} footers are damaged, {} files cannot be "
        "read as a whole",
        number("damaged_chunks"), number("damaged_blocks"), number("damaged_footers"),
        number("damaged_files"));
  } else {
    text += "nothing is damaged";
  }
  if (!outcome.at("complete").get<bool>()) text += "; interrupted, the next scrub goes on there";
  return text + "\n";
}

ExitCode Run(const Arguments& arguments, Surroundings& surroundings) {
  const auto signals = TerminationSignals::Block();  // before any thread is there
  if (!signals.ok()) return Fail(surroundings, signals.status());
  const Result<Json> outcome = Scrub(arguments, **signals, surroundings);
  if (!outcome.ok()) return Fail(surroundings, outcome.status());
  surroundings.out << (arguments.json ? outcome->dump(2) + "\n" : Format(*outcome)) << std::flush;
  if (ToldOfDamage(*outcome)) return ExitCode::kDamaged;
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
