// siltfs find-duplicates
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>
#include <variant>
#include <vector>

#include "store/base/size_text.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/usage_client.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kUsualLimit = 20;

struct FindDuplicatesArguments {
  std::vector<std::string> paths;
  std::optional<std::string> min_size;
  uint64_t limit = kUsualLimit;
  bool partial = false;
  bool json = false;
  bool quiet = false;
};

// Turns what the daemon has found into JSON. kCorruption if it names no path of the arguments.
class FoundDuplicates {
 public:
  explicit FoundDuplicates(const FindDuplicatesArguments& arguments) : arguments_(arguments) {}

  Status Add(const DuplicateGroup& group) {
    Json files = Json::array();
    for (const DuplicateGroup::File& file : group.files) {
      SILTFS_ASSIGN_OR_RETURN(std::string path, PathOf(file));
      files.push_back(std::move(path));
    }
    groups_.push_back({{"size", group.size},
                       {"copies", group.copies},
                       {"saved_bytes", group.saved_bytes},
                       {"files_not_listed", group.copies - group.files.size()},
                       {"files", std::move(files)}});
    return Status::Ok();
  }
  Status Add(const PartlySharedPair& pair) {
    SILTFS_ASSIGN_OR_RETURN(std::string first, PathOf(pair.first));
    SILTFS_ASSIGN_OR_RETURN(std::string second, PathOf(pair.second));
    pairs_.push_back({{"shared_bytes", pair.shared_bytes},
                      {"sizes", {pair.first_size, pair.second_size}},
                      {"files", {std::move(first), std::move(second)}}});
    return Status::Ok();
  }
  void AddTo(Json& document) && {
    document["groups"] = std::move(groups_);
    if (arguments_.partial) document["pairs"] = std::move(pairs_);
  }

 private:
  Result<std::string> PathOf(const DuplicateGroup::File& file) const {
    if (file.path < arguments_.paths.size())
      return JoinBelow(arguments_.paths[file.path], file.below);
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood");
  }

  const FindDuplicatesArguments& arguments_;
  Json groups_ = Json::array();
  Json pairs_ = Json::array();
};

std::string Text(const Json& document) {
  std::string text;
  const auto number = [](const Json& object, const char* key) {
    return object.value(key, uint64_t{0});
  };
  for (const Json& group : document.at("groups")) {
    text += fmt::format("{} saved: {} files of {}\n", FormatSize(number(group, "saved_bytes")),
                        number(group, "copies"), FormatSize(number(group, "size")));
    for (const Json& file : group.at("files"))
      text += fmt::format("    {}\n", Printable(file.get<std::string>()));
    if (const uint64_t more = number(group, "files_not_listed"); more > 0)
      text += fmt::format("    and {} more\n", more);
  }
  text +=
      fmt::format("{} files, {} of them in {} groups of duplicates, which save {}\n",
                  number(document, "files"), number(document, "copies_found"),
                  number(document, "groups_found"), FormatSize(number(document, "saved_bytes")));
  if (const uint64_t busy = number(document, "files_busy"); busy > 0)
    text += fmt::format("{} files are being written and were not compared\n", busy);
  return text;
}

ExitCode RunFindDuplicates(const FindDuplicatesArguments& arguments, Surroundings& surroundings) {
  DuplicateRequest request{.scope = {}, .limit = arguments.limit, .partial = arguments.partial};
  if (arguments.min_size) {
    const auto size = ParseSizeOption("--min-size", *arguments.min_size);
    if (!size.ok()) return Fail(surroundings, ExitCode::kUsage, size.status().ToString());
    request.min_size = *size;
  }
  auto places = FindUsagePaths(arguments.paths);
  if (!places.ok()) return Fail(surroundings, places.status());
  request.scope.paths = places->paths;
  FoundDuplicates found(arguments);
  const auto take = [&](std::string_view line) -> Result<bool> {
    SILTFS_ASSIGN_OR_RETURN(const auto more, usage::DecodeDuplicates(line));
    if (!more) return false;
    for (const usage::Duplicate& duplicate : *more) {
      SILTFS_RETURN_IF_ERROR(
          std::visit([&](const auto& item) { return found.Add(item); }, duplicate));
    }
    return true;
  };
  auto result = AskUsage(surroundings, {.command = "find-duplicates",
                                        .subject = arguments.paths[0],
                                        .quiet = arguments.quiet,
                                        .places = *places,
                                        .wanted = std::move(request),
                                        .take = take});
  if (!result.ok()) return Fail(surroundings, result.status());
  Json document = *std::move(result);
  std::move(found).AddTo(document);
  if (arguments.json) {
    PrintJson(surroundings, document);
  } else {
    surroundings.out << Text(document) << std::flush;
  }
  return WarnOfLeftOut(surroundings, document.value("left_out", uint64_t{0}));
}

}  // namespace

std::function<ExitCode()> ConfigureFindDuplicates(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<FindDuplicatesArguments>();
  app.add_option("PATH...", arguments->paths, "Files and directories in a mounted store")
      ->required()
      ->expected(1, 1 << 20);
  app.add_option("--min-size", arguments->min_size, "Leave out smaller files")->type_name("SIZE");
  app.add_option("--limit", arguments->limit,
                 fmt::format("Show at most so many groups, and pairs, those that save most; "
                             "{} by default",
                             kUsualLimit))
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{usage::kMostGroups}).description(""));
  app.add_flag("--partial", arguments->partial,
               "Also show pairs of files that have a part of their content in common");
  app.add_flag("--json", arguments->json, "Print one JSON document");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return RunFindDuplicates(*arguments, surroundings); };
}

}  // namespace siltfs
