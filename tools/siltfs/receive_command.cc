// siltfs receive
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/transfer_command.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct ReceiveArguments {
  std::string place;
  std::string name;
  std::string abandoned;
  bool two_way = false;
  bool token = false;
  bool json = false;
  bool quiet = false;
};

SnapshotUse Use(const ReceiveArguments& arguments, SnapshotAccess access, const char* afterwards) {
  return {.place = arguments.place,
          .access = access,
          .command = "receive",
          .afterwards = afterwards,
          .quiet = arguments.quiet};
}

ExitCode Receive(const ReceiveArguments& arguments, Surroundings& surroundings) {
  Surroundings on_err = WithResultsOnErr(surroundings);
  // Then standard output has the answers.
  Surroundings& results = arguments.two_way ? on_err : surroundings;
  const auto received = RunTransfer(
      results,
      Use(arguments, SnapshotAccess::kChange,
          "there is no new snapshot; what has arrived is kept until the transfer is continued with "
          "the token that siltfs receive --token prints"),
      {.input = true, .output = arguments.two_way},
      [&](SnapshotPlace& store, PipedStreams& pipes, const std::function<Status()>& check) {
        return store.Receive({.name = arguments.name, .two_way = arguments.two_way}, pipes, check);
      });
  if (!received.ok()) return Fail(results, received.status());
  if (arguments.json) {
    PrintJson(results, *received);
  } else if (!arguments.two_way) {
    results.out << fmt::format("received {}: {}\n",
                               Printable(received->at("snapshot").get<std::string>()),
                               TransferTotals(*received))
                << std::flush;
  }
  return ExitCode::kDone;
}

// The transfer of this name, or the only one.
Result<Json> ChooseUnfinished(const Json& list, const std::string& name) {
  std::vector<Json> found;
  std::string names;
  for (const Json& unfinished : list) {
    if (!name.empty() && unfinished.value("name", "") != name) continue;
    found.push_back(unfinished);
    names += (names.empty() ? "" : ", ") + unfinished.value("name", "");
  }
  if (found.empty()) return Status(StatusCode::kNotFound, "there is no transfer that ended early");
  if (found.size() == 1) return found.front();
  return Status(StatusCode::kAborted,
                fmt::format("several transfers ended early: {}; choose one with --name", names));
}

ExitCode PrintToken(const ReceiveArguments& arguments, Surroundings& surroundings) {
  const auto listed =
      WithSnapshots(surroundings, Use(arguments, SnapshotAccess::kRead, "nothing has changed"),
                    [](SnapshotPlace& store, LongCommand&) { return store.Unfinished(); });
  if (!listed.ok()) return Fail(surroundings, listed.status());
  const auto chosen = ChooseUnfinished(*listed, arguments.name);
  if (!chosen.ok()) return Fail(surroundings, chosen.status());
  if (arguments.json) {
    PrintJson(surroundings, *chosen);
  } else {
    surroundings.out << Printable(chosen->value("token", "")) << "\n" << std::flush;
  }
  return ExitCode::kDone;
}

ExitCode Abandon(const ReceiveArguments& arguments, Surroundings& surroundings) {
  const auto abandoned = WithSnapshots(
      surroundings,
      Use(arguments, SnapshotAccess::kChange, "what is left of the transfer is discarded later"),
      [&](SnapshotPlace& store, LongCommand&) { return store.Abandon(arguments.abandoned); });
  if (!abandoned.ok()) return Fail(surroundings, abandoned.status());
  if (arguments.json) PrintJson(surroundings, *abandoned);
  return ExitCode::kDone;
}

ExitCode PerformReceive(const ReceiveArguments& arguments, Surroundings& surroundings) {
  if (arguments.token) return PrintToken(arguments, surroundings);
  if (!arguments.abandoned.empty()) return Abandon(arguments, surroundings);
  return Receive(arguments, surroundings);
}

}  // namespace

std::function<ExitCode()> ConfigureReceive(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<ReceiveArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_option("--name", arguments->name,
                 "The name of the new snapshot; by default the name that it has at the sender. "
                 "With --token: which transfer");
  CLI::Option* two_way = app.add_flag("--two-way", arguments->two_way,
                                      "Write answers for siltfs send --two-way to standard output");
  CLI::Option* token = app.add_flag(
      "--token", arguments->token,
      "Receive nothing; print the token with which a transfer that ended early is continued");
  app.add_option("--abandon", arguments->abandoned,
                 "Receive nothing; discard what a transfer of this name that ended early has left")
      ->excludes(token)
      ->excludes(two_way);
  token->excludes(two_way);
  app.add_flag("--json", arguments->json,
               "Print one JSON document, with --two-way on standard error");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return PerformReceive(*arguments, surroundings); };
}

}  // namespace siltfs
