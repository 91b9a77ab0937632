#include "fs/clone/clone_message.h"

#include "store/base/hex_text.h"

namespace siltfs::clone {
namespace {

using Json = nlohmann::json;

std::optional<uint64_t> NumberOf(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

Json Parse(std::string_view line) { return Json::parse(line, nullptr, /*allow_exceptions=*/false); }

}  // namespace

std::string EncodeWanted(const Wanted& wanted) {
  return Json{{"source", wanted.source}, {"parent", wanted.parent}, {"name", ToHex(wanted.name)}}
             .dump() +
         "\n";
}

Result<Wanted> DecodeWanted(std::string_view line) {
  const Json object = Parse(line);
  const auto source = NumberOf(object, "source");
  const auto parent = NumberOf(object, "parent");
  std::optional<std::string> name;
  if (source && parent) {
    const auto found = object.find("name");
    if (found != object.end() && found->is_string()) name = FromHex(found->get<std::string>());
  }
  if (!name) return Status(StatusCode::kInvalidArgument, "the request for a clone is malformed");
  return Wanted{.source = *source, .parent = *parent, .name = *std::move(name)};
}

std::string EncodeProgress(const CloneTotals& totals) {
  return Json{{"files", totals.files}, {"directories", totals.directories}}.dump() + "\n";
}

std::optional<CloneTotals> DecodeProgress(std::string_view line) {
  const Json object = Parse(line);
  const auto files = NumberOf(object, "files");
  const auto directories = NumberOf(object, "directories");
  if (!files || !directories) return std::nullopt;
  return CloneTotals{.files = *files, .directories = *directories};
}

Json ToJson(const CloneTotals& totals) {
  return {{"files", totals.files},
          {"directories", totals.directories},
          {"logical_bytes", totals.logical_bytes}};
}

}  // namespace siltfs::clone
