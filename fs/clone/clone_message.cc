#include "fs/clone/clone_message.h"

#include <fmt/format.h>

namespace siltfs::clone {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kDigits = "0123456789abcdef";

std::optional<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = kDigits.find(text[i]);
    const size_t low = kDigits.find(text[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

std::optional<uint64_t> NumberOf(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

Json Parse(std::string_view line) { return Json::parse(line, nullptr, /*allow_exceptions=*/false); }

}  // namespace

std::string EncodeWanted(const Wanted& wanted) {
  std::string hex;
  for (const char c : wanted.name) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return Json{{"source", wanted.source}, {"parent", wanted.parent}, {"name", hex}}.dump() + "\n";
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
