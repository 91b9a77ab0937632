#include "fs/usage/usage_message.h"

#include <utility>

#include "store/base/hex_text.h"

namespace siltfs::usage {
namespace {

using Json = nlohmann::json;

Status Malformed() { return {StatusCode::kInvalidArgument, "a message about space is malformed"}; }

Json Parse(std::string_view line) { return Json::parse(line, nullptr, /*allow_exceptions=*/false); }

std::optional<uint64_t> NumberIn(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

std::optional<std::string> BytesIn(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return FromHex(found->get<std::string>());
}

Json PathsOf(const UsageScope& scope) {
  Json paths = Json::array();
  for (const UsagePath& path : scope.paths)
    paths.push_back({{"directory", path.directory}, {"name", ToHex(path.name)}});
  return paths;
}

std::optional<std::vector<UsagePath>> PathsIn(const Json& object) {
  if (!object.is_object() || !object.contains("paths") || !object["paths"].is_array())
    return std::nullopt;
  std::vector<UsagePath> paths;
  for (const Json& path : object["paths"]) {
    const auto directory = NumberIn(path, "directory");
    auto name = BytesIn(path, "name");
    if (!directory || !name) return std::nullopt;
    paths.push_back({.directory = *directory, .name = *std::move(name)});
  }
  return paths;
}

// The numbers of a space, by their keys.
template <typename Usage, typename Visit>
void ForEachNumber(Usage& usage, const Visit& visit) {
  visit("files", usage.files);
  visit("directories", usage.directories);
  visit("logical_bytes", usage.logical_bytes);
  visit("exclusive_bytes", usage.exclusive_bytes);
  visit("shared_bytes", usage.shared_bytes);
  visit("snapshot_bytes", usage.snapshot_bytes);
  visit("recipe_bytes", usage.recipe_bytes);
  visit("pending_bytes", usage.pending_bytes);
}

std::optional<UsageEntry> EntryIn(const Json& object) {
  const auto path = NumberIn(object, "path");
  auto below = BytesIn(object, "below");
  if (!path || !below) return std::nullopt;
  UsageEntry entry{.path = *path, .below = *std::move(below), .usage = {}};
  bool complete = true;
  ForEachNumber(entry.usage, [&](const char* key, uint64_t& number) {
    const auto found = NumberIn(object, key);
    complete = complete && found;
    number = found.value_or(0);
  });
  return complete ? std::optional(std::move(entry)) : std::nullopt;
}

Json ToJson(const DuplicateGroup::File& file) {
  return {{"path", file.path}, {"below", ToHex(file.below)}};
}

std::optional<DuplicateGroup::File> FileIn(const Json& object) {
  const auto path = NumberIn(object, "path");
  auto below = BytesIn(object, "below");
  if (!path || !below) return std::nullopt;
  return DuplicateGroup::File{.path = *path, .below = *std::move(below)};
}

std::optional<Duplicate> PairIn(const Json& object) {
  const auto first = FileIn(object.value("first", Json()));
  const auto second = FileIn(object.value("second", Json()));
  const auto first_size = NumberIn(object, "first_size");
  const auto second_size = NumberIn(object, "second_size");
  const auto shared = NumberIn(object, "shared_bytes");
  if (!first || !second || !first_size || !second_size || !shared) return std::nullopt;
  return PartlySharedPair{.first = *first,
                          .second = *second,
                          .first_size = *first_size,
                          .second_size = *second_size,
                          .shared_bytes = *shared};
}

std::optional<Duplicate> DuplicateIn(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  if (object.contains("first")) return PairIn(object);
  const auto size = NumberIn(object, "size");
  const auto copies = NumberIn(object, "copies");
  const auto saved = NumberIn(object, "saved_bytes");
  if (!size || !copies || !saved || !object.contains("files") || !object["files"].is_array())
    return std::nullopt;
  DuplicateGroup group{.size = *size, .copies = *copies, .saved_bytes = *saved, .files = {}};
  for (const Json& listed : object["files"]) {
    auto file = FileIn(listed);
    if (!file) return std::nullopt;
    group.files.push_back(*std::move(file));
  }
  return group;
}

template <typename Item>
Result<std::optional<std::vector<Item>>> DecodeItems(
    std::string_view line, std::optional<Item> (*decode)(const Json& object)) {
  if (!line.starts_with('[')) return std::optional<std::vector<Item>>();
  const Json list = Parse(line);
  if (!list.is_array()) return Malformed();
  std::vector<Item> items;
  for (const Json& object : list) {
    auto item = decode(object);
    if (!item) return Malformed();
    items.push_back(*std::move(item));
  }
  return std::optional(std::move(items));
}

}  // namespace

std::string EncodeWanted(const Wanted& wanted) {
  Json object;
  if (const auto* const measure = std::get_if<UsageRequest>(&wanted)) {
    object = {{"paths", PathsOf(measure->scope)}, {"depth", measure->depth}};
  } else {
    const auto& search = std::get<DuplicateRequest>(wanted);
    object = {{"paths", PathsOf(search.scope)},
              {"min_size", search.min_size},
              {"limit", search.limit},
              {"partial", search.partial}};
  }
  return object.dump() + "\n";
}

Result<Wanted> DecodeWanted(std::string_view line) {
  const Json object = Parse(line);
  auto paths = PathsIn(object);
  if (!paths || paths->empty()) return Malformed();
  if (const auto depth = NumberIn(object, "depth")) {
    if (*depth > UINT32_MAX) return Malformed();
    UsageRequest request{.scope = {}, .depth = static_cast<uint32_t>(*depth)};
    request.scope.paths = *std::move(paths);
    return Wanted(std::move(request));
  }
  const auto min_size = NumberIn(object, "min_size");
  const auto limit = NumberIn(object, "limit");
  if (!min_size || !limit || *limit > kMostGroups) return Malformed();
  const auto partial = object.find("partial");
  if (partial == object.end() || !partial->is_boolean()) return Malformed();
  DuplicateRequest request{
      .scope = {}, .min_size = *min_size, .limit = *limit, .partial = partial->get<bool>()};
  request.scope.paths = *std::move(paths);
  return Wanted(std::move(request));
}

std::string EncodeProgress(const UsageProgress& progress) {
  return Json{{"step", static_cast<unsigned>(progress.step)},
              {"done", progress.done},
              {"total", progress.total}}
             .dump() +
         "\n";
}

std::optional<UsageProgress> DecodeProgress(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  const Json object = Parse(line);
  const auto step = NumberIn(object, "step");
  const auto done = NumberIn(object, "done");
  const auto total = NumberIn(object, "total");
  if (!step || *step < 1 || *step > 4 || !done || !total) return std::nullopt;
  return UsageProgress{
      .step = static_cast<UsageProgress::Step>(*step), .done = *done, .total = *total};
}

std::string EncodeEntries(const std::vector<UsageEntry>& entries) {
  Json list = Json::array();
  for (const UsageEntry& entry : entries) {
    Json object = ToJson(entry.usage);
    object["path"] = entry.path;
    object["below"] = ToHex(entry.below);
    list.push_back(std::move(object));
  }
  return list.dump() + "\n";
}

std::string EncodeGroups(const std::vector<DuplicateGroup>& groups) {
  Json list = Json::array();
  for (const DuplicateGroup& group : groups) {
    Json files = Json::array();
    for (const DuplicateGroup::File& file : group.files) files.push_back(ToJson(file));
    list.push_back({{"size", group.size},
                    {"copies", group.copies},
                    {"saved_bytes", group.saved_bytes},
                    {"files", std::move(files)}});
  }
  return list.dump() + "\n";
}

std::string EncodePairs(const std::vector<PartlySharedPair>& pairs) {
  Json list = Json::array();
  for (const PartlySharedPair& pair : pairs) {
    list.push_back({{"first", ToJson(pair.first)},
                    {"second", ToJson(pair.second)},
                    {"first_size", pair.first_size},
                    {"second_size", pair.second_size},
                    {"shared_bytes", pair.shared_bytes}});
  }
  return list.dump() + "\n";
}

Result<std::optional<std::vector<UsageEntry>>> DecodeEntries(std::string_view line) {
  return DecodeItems(line, EntryIn);
}

Result<std::optional<std::vector<Duplicate>>> DecodeDuplicates(std::string_view line) {
  return DecodeItems(line, DuplicateIn);
}

Json ToJson(const SpaceUsage& usage) {
  Json object = Json::object();
  ForEachNumber(usage, [&](const char* key, uint64_t number) { object[key] = number; });
  return object;
}

Json ToJson(const UsageReport& report) {
  Json object = ToJson(report.total);
  object["shared_among_bytes"] = report.shared_among_bytes;
  object["left_out"] = report.left_out;
  return object;
}

Json ToJson(const DuplicateReport& report) {
  return {{"files", report.files},
          {"files_busy", report.files_busy},
          {"groups_found", report.groups_found},
          {"copies_found", report.copies_found},
          {"saved_bytes", report.saved_bytes},
          {"left_out", report.left_out}};
}

}  // namespace siltfs::usage
