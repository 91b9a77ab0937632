// siltfs import
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "store/base/size_text.h"
#include "store/env/daemon.h"
#include "store/env/process.h"
#include "tools/import/import_run.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// The JSON document lists at most this many errors. All are printed on standard error.
constexpr size_t kMostErrorsListed = 1000;

struct ImportCommandArguments {
  std::vector<std::string> paths;  // the sources and the target
  std::string reference;
  ImportOptions options;
  bool json = false;
  bool quiet = false;
};

std::string Format(const ImportTotals& totals, uint64_t bytes_new, double seconds, bool dry_run) {
  std::string text = fmt::format("{} files, {} of them unchanged", totals.files.load(),
                                 totals.files_unchanged.load());
  if (dry_run) return text + "; nothing was changed\n";
  text += fmt::format("; {} read, {} new, in {:.1f} s", FormatSize(totals.bytes_read),
                      FormatSize(bytes_new), seconds);
  if (totals.removed > 0) text += fmt::format("; {} names removed", totals.removed.load());
  if (totals.errors > 0) text += fmt::format("; {} errors", totals.errors.load());
  return text + "\n";
}

ExitCode RunImport(const ImportCommandArguments& arguments, Surroundings& surroundings) {
  if (arguments.paths.size() < 2) {
    return Fail(surroundings, ExitCode::kUsage,
                "an import needs a source and a target (try siltfs import --help)");
  }
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "import", .subject = arguments.paths.back(), .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const auto limit = RaiseFileLimit();
  limit.status().IgnoreError("the import may work with fewer descriptors");
  ImportArguments import;
  import.sources.assign(arguments.paths.begin(), arguments.paths.end() - 1);
  import.target = arguments.paths.back();
  import.reference = arguments.reference;
  import.options = arguments.options;
  import.find_daemon = AddressAround;

  Json errors = Json::array();
  const auto report = [&](const ImportError& error) {
    (*command)->Print([&] { Say(surroundings, error.path + ": " + error.cause); });
    if (errors.size() < kMostErrorsListed)
      errors.push_back({{"path", error.path}, {"cause", error.cause}});
  };
  const auto tell = [&](const std::string& line) {
    if (arguments.json) return;
    (*command)->Print([&] { surroundings.out << Printable(line) << "\n"; });
  };
  ImportRun run(std::move(import), report, tell);
  const auto begin = std::chrono::steady_clock::now();
  (*command)->OnInterruption([&run] { run.Interrupt(); });
  (*command)->Observe([&run] { return WorkProgress{"files", run.totals().files, 0}; });
  const Result<uint64_t> outcome = run.Run();
  (*command)->OnInterruption({});
  (*command)->End();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const ImportTotals& totals = run.totals();
  const Json document = {
      {"files", totals.files.load()},           {"files_unchanged", totals.files_unchanged.load()},
      {"bytes_read", totals.bytes_read.load()}, {"bytes_new", outcome.ok() ? *outcome : 0},
      {"names_removed", totals.removed.load()}, {"errors", totals.errors.load()},
      {"error_list", std::move(errors)},        {"seconds", seconds.count()}};
  if (!outcome.ok()) {
    const Status failure = ExplainInterruption(
        outcome.status(),
        "the files that were imported are whole, and the next siltfs import leaves them alone");
    SayFailure(surroundings, failure.ToString(), document, ExitCodeOf(failure));
    return ExitCodeOf(outcome.status());
  }
  if (arguments.json) {
    PrintJson(surroundings, document);
  } else {
    surroundings.out << Format(totals, *outcome, seconds.count(), arguments.options.dry_run)
                     << std::flush;
  }
  return totals.errors > 0 ? ExitCode::kSomeFailed : ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureImport(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ImportCommandArguments>();
  // CLI11 2.4 refuses a name with a space.
  app.add_option(
         "PATH", arguments->paths,
         "SRC... MOUNT/DIR: the sources, and the directory in a mounted store that they go "
         "into. SRC becomes DIR/SRC; with a slash at its end, SRC/ puts the contents of SRC "
         "into DIR")
      ->required()
      ->expected(2, 1 << 20);
  app.add_option("--reference", arguments->reference,
                 "An earlier import in the same store: files that have not changed since are not "
                 "read");
  app.add_flag("--checksum", arguments->options.checksum, "Read all files");
  app.add_flag("--delete", arguments->options.remove,
               "Remove what the sources do not have from the directories that are imported");
  app.add_option("--exclude", arguments->options.exclude,
                 "Leave out names or paths that match the pattern; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1);
  app.add_flag("--one-file-system", arguments->options.one_file_system,
               "Import directories on other file systems without their contents");
  app.add_flag("--dry-run", arguments->options.dry_run, "Print what would be done, and do nothing");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunImport(*arguments, surroundings); };
}

}  // namespace siltfs
