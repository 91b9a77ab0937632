// siltfs export
#include "tools/export/export_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "store/base/size_text.h"
#include "store/env/daemon.h"
#include "store/env/mountpoint.h"
#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// The JSON document lists at most this many errors. All are printed on standard error.
constexpr size_t kMostErrorsListed = 1000;

struct ExportCommandArguments {
  std::string source;
  std::string target;
  bool verify = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* kAfterwards =
    "the files that were exported are whole, and the next siltfs export leaves them alone";

Result<ExportArguments> Resolve(const ExportCommandArguments& arguments,
                                const LongCommand& command) {
  ExportArguments resolved;
  SILTFS_ASSIGN_OR_RETURN(resolved.address, AddressAround(arguments.source));
  if (resolved.address.mountpoint.empty())
    return Status(StatusCode::kNotFound, "is not in a mounted siltfs file system")
        .At(arguments.source);
  SILTFS_RETURN_IF_ERROR(control::Identify(resolved.address).status());
  const auto directory = SourceDirectory::Open(arguments.source);
  // A missing directory is no missing store, which has its own exit code.
  if (directory.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kIoError, "there is no such directory").At(arguments.source);
  SILTFS_RETURN_IF_ERROR(directory.status());
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes attributes, (*directory)->Attributes());
  resolved.source = attributes.inode;
  // Data that the kernel still holds would be missing.
  SILTFS_RETURN_IF_ERROR(SendWrites(resolved.address.mountpoint));
  SILTFS_RETURN_IF_ERROR(
      control::Ask(resolved.address, "sync",
                   command.WhileItRuns("nothing was exported", std::chrono::milliseconds(0)))
          .status());
  resolved.target = arguments.target;
  resolved.verify = arguments.verify;
  const auto limit = RaiseFileLimit();
  resolved.open_files = limit.ok() ? *limit : 1024;
  return resolved;
}

ExitCode RunExport(const ExportCommandArguments& arguments, Surroundings& surroundings) {
  const auto command = LongCommand::Begin(
      surroundings, {.command = "export", .subject = arguments.target, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  const auto begin = std::chrono::steady_clock::now();
  auto resolved = Resolve(arguments, **command);
  if (!resolved.ok()) {
    (*command)->End();
    return Fail(surroundings, resolved.status());
  }
  Json errors = Json::array();
  const auto report = [&](const std::string& path, const std::string& cause) {
    (*command)->Print([&] { Say(surroundings, path + ": " + cause); });
    if (errors.size() < kMostErrorsListed) errors.push_back({{"path", path}, {"cause", cause}});
  };
  ExportRun run(*std::move(resolved), report);
  (*command)->OnInterruption([&run] { run.Interrupt(); });
  (*command)->Observe([&run] { return WorkProgress{"files", run.totals().files, 0}; });
  const Status outcome = ExplainInterruption(run.Run(), kAfterwards);
  (*command)->OnInterruption({});
  (*command)->End();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const ExportTotals& totals = run.totals();
  const Json document = {{"files", totals.files.load()},
                         {"files_unchanged", totals.files_unchanged.load()},
                         {"bytes_read", totals.bytes_read.load()},
                         {"bytes_new", totals.bytes_new.load()},
                         {"errors", totals.errors.load()},
                         {"error_list", std::move(errors)},
                         {"seconds", seconds.count()}};
  if (!outcome.ok()) {
    SayFailure(surroundings, outcome.ToString(), document, ExitCodeOf(outcome));
    return ExitCodeOf(outcome);
  }
  if (arguments.json) {
    PrintJson(surroundings, document);
  } else {
    surroundings.out << fmt::format("{} files, {} of them unchanged; {} written, in {:.1f} s{}\n",
                                    totals.files.load(), totals.files_unchanged.load(),
                                    FormatSize(totals.bytes_new), seconds.count(),
                                    totals.errors > 0
                                        ? fmt::format("; {} errors", totals.errors.load())
                                        : std::string())
                     << std::flush;
  }
  return totals.errors > 0 ? ExitCode::kSomeFailed : ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureExport(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ExportCommandArguments>();
  app.add_option("MOUNT/DIR", arguments->source, "A directory in a mounted store")->required();
  app.add_option("DEST", arguments->target,
                 "The directory that gets the contents; it is made if it is missing")
      ->required();
  app.add_flag("--verify", arguments->verify, "Read back what was written, and compare it");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunExport(*arguments, surroundings); };
}

}  // namespace siltfs
