// siltfs snapshot diff
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>

#include "fs/control/diff_session.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/snapshot_command.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

struct SnapshotDiffArguments {
  std::string place;
  std::string from;
  std::string to;
  bool json = false;
  bool quiet = false;
};

constexpr uint32_t kDirectoryType = 0040000;

std::string Path(const PathChange& change, const std::string& path) {
  const bool directory = change.type == kDirectoryType && path != "/";
  return Printable(path) + (directory ? "/" : "");
}

// '+' created, '-' deleted, 'M' other data, 'U' other attributes, 'R' renamed.
std::string Line(const PathChange& change) {
  switch (change.kind) {
    case ChangeKind::kCreated:
      return "+   " + Path(change, change.path) + "\n";
    case ChangeKind::kDeleted:
      return "-   " + Path(change, change.path) + "\n";
    case ChangeKind::kChanged:
      return (change.content ? "M   " : "U   ") + Path(change, change.path) + "\n";
    case ChangeKind::kRenamed:
      break;
  }
  const char* const changed = change.content ? "RM  " : change.metadata ? "RU  " : "R   ";
  return changed + Path(change, change.old_path) + " -> " + Path(change, change.path) + "\n";
}

Json Document(const SnapshotDiffArguments& arguments) {
  Json document = {{"from", arguments.from},        {"to", nullptr},
                   {"created", Json::array()},      {"changed", Json::array()},
                   {"renamed", Json::array()},      {"deleted", Json::array()},
                   {"metadata_only", Json::array()}};
  if (!arguments.to.empty()) document["to"] = arguments.to;
  return document;
}

void AddTo(Json& document, const PathChange& change) {
  if (change.kind == ChangeKind::kRenamed) {
    document["renamed"].push_back({{"from", change.old_path}, {"to", change.path}});
  } else {
    document[std::string(NameOf(change.kind))].push_back(change.path);
  }
  if (change.metadata && !change.content) document["metadata_only"].push_back(change.path);
}

ExitCode RunSnapshotDiff(const SnapshotDiffArguments& arguments, Surroundings& surroundings) {
  Json document = Document(arguments);
  const auto visit = [&](const PathChange& change) {
    if (arguments.json) {
      AddTo(document, change);
    } else {
      surroundings.out << Line(change);
    }
    return surroundings.out.good() ? Status::Ok()
                                   : Status(StatusCode::kIoError, "cannot write the output");
  };
  const auto to = arguments.to.empty() ? std::nullopt : std::optional(arguments.to);
  const auto compared = WithSnapshots(
      surroundings,
      {.place = arguments.place,
       .access = SnapshotAccess::kRead,
       .command = "snapshot diff",
       .afterwards = "nothing has changed, and the list is not complete",
       .quiet = arguments.quiet},
      [&](SnapshotPlace& place, LongCommand& command) -> Result<Json> {
        if (!to) SILTFS_RETURN_IF_ERROR(place.Sync());
        return place.Diff({.from = arguments.from, .to = to}, [&](const PathChange& change) {
          SILTFS_RETURN_IF_ERROR(command.Check());
          Status visited;
          command.Print([&] { visited = visit(change); });
          return visited;
        });
      });
  if (!compared.ok()) return Fail(surroundings, compared.status());
  if (arguments.json) PrintJson(surroundings, document);
  surroundings.out << std::flush;
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureSnapshotDiff(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<SnapshotDiffArguments>();
  app.add_option("STORE|MOUNTPOINT", arguments->place,
                 "Where the store is mounted, or its directory if it is not mounted")
      ->required();
  app.add_option("FROM", arguments->from, "The snapshot to begin with")->required();
  app.add_option("TO", arguments->to, "The snapshot to compare it with; without it, the present");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunSnapshotDiff(*arguments, surroundings); };
}

}  // namespace siltfs
