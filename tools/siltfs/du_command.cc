// siltfs du
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/usage_client.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// A place in a million levels of directories cannot be shown.
constexpr uint32_t kMostDepth = 1000;

struct DuArguments {
  std::vector<std::string> paths;
  uint32_t depth = 0;
  bool summarize = false;
  bool bytes = false;
  bool json = false;
  bool quiet = false;
};

std::string Size(const DuArguments& arguments, uint64_t bytes) {
  return arguments.bytes ? fmt::format("{}", bytes) : FormatSize(bytes);
}

// What the exclusive chunks probably take in segments: they are compressed like the others.
uint64_t StoredBytes(uint64_t exclusive, double ratio) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(exclusive) * ratio));
}

std::string Line(const DuArguments& arguments, const Json& space, const std::string& name) {
  const auto size = [&](const char* key) { return Size(arguments, space.value(key, uint64_t{0})); };
  return fmt::format("{:>12} {:>12} {:>12} {:>12}  {}\n", size("logical_bytes"),
                     size("exclusive_bytes"), size("exclusive_stored_bytes"), size("shared_bytes"),
                     Printable(name));
}

std::string Table(const DuArguments& arguments, const Json& document) {
  std::string text = fmt::format("{:>12} {:>12} {:>12} {:>12}  path\n", "logical", "exclusive",
                                 "on disk", "shared");
  for (const Json& entry : document.at("paths"))
    text += Line(arguments, entry, entry.at("path").get<std::string>());
  if (arguments.paths.size() > 1) text += Line(arguments, document, "total");
  return text;
}

Json ToJson(const DuArguments& arguments, const std::vector<UsageEntry>& entries, Json result) {
  const double ratio = result.value("stored_ratio", 1.0);
  const auto add_stored = [ratio](Json& space) {
    space["exclusive_stored_bytes"] =
        StoredBytes(space.value("exclusive_bytes", uint64_t{0}), ratio);
  };
  result.erase("stored_ratio");
  add_stored(result);
  result["paths"] = Json::array();
  for (const UsageEntry& entry : entries) {
    Json space = usage::ToJson(entry.usage);
    add_stored(space);
    space["path"] = JoinBelow(arguments.paths.at(entry.path), entry.below);
    result["paths"].push_back(std::move(space));
  }
  if (arguments.paths.size() == 1) result["path"] = arguments.paths[0];
  return result;
}

ExitCode RunDu(const DuArguments& arguments, Surroundings& surroundings) {
  auto places = FindUsagePaths(arguments.paths);
  if (!places.ok()) return Fail(surroundings, places.status());
  UsageRequest request{.scope = {}, .depth = arguments.depth};
  request.scope.paths = places->paths;
  std::vector<UsageEntry> entries;
  const auto take = [&](std::string_view line) -> Result<bool> {
    SILTFS_ASSIGN_OR_RETURN(auto more, usage::DecodeEntries(line));
    if (!more) return false;
    for (UsageEntry& entry : *more) {
      if (entry.path >= arguments.paths.size())
        return Status(StatusCode::kCorruption, "the daemon's answer is not understood");
      entries.push_back(std::move(entry));
    }
    return true;
  };
  auto result = AskUsage(surroundings, {.command = "du",
                                        .subject = arguments.paths[0],
                                        .quiet = arguments.quiet,
                                        .places = *places,
                                        .wanted = std::move(request),
                                        .take = take});
  if (!result.ok()) return Fail(surroundings, result.status());
  Json document = ToJson(arguments, entries, *std::move(result));
  if (arguments.json) {
    PrintJson(surroundings, document);
  } else {
    surroundings.out << Table(arguments, document) << std::flush;
  }
  return WarnOfLeftOut(surroundings, document.value("left_out", uint64_t{0}));
}

}  // namespace

std::function<ExitCode()> ConfigureDu(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<DuArguments>();
  app.add_option("PATH...", arguments->paths, "Files and directories in a mounted store")
      ->required()
      ->expected(1, 1 << 20);
  CLI::Option* depth =
      app.add_option(
             "-d,--max-depth", arguments->depth,
             "Also show the directories below each path that are at most so many levels deep")
          ->type_name("N")
          ->check(CLI::Range(0U, kMostDepth).description(""));
  app.add_flag("-s,--summarize", arguments->summarize,
               "Show each path alone, as without --max-depth")
      ->excludes(depth);
  app.add_flag("-b,--bytes", arguments->bytes, "Print sizes in bytes instead of units");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunDu(*arguments, surroundings); };
}

}  // namespace siltfs
