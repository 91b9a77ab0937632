#include "fs/control/protocol.h"

#include <fmt/format.h>

#include "store/base/checksum.h"

namespace siltfs::control {
namespace {

using Json = nlohmann::json;

// Never throws, even if a text has invalid UTF-8.
std::string ToLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// No message is nested as deeply. Functions that write or change a document recurse, so a document
// that is nested deeply enough would overflow their stack.
constexpr int kMostLevels = 32;

// Returns a discarded value for text that is no JSON, or is nested too deeply.
Json Parse(std::string_view line) {
  bool too_deep = false;
  Json json = Json::parse(
      line,
      [&too_deep](int level, Json::parse_event_t, const Json&) {
        too_deep |= level > kMostLevels;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

StatusCode CodeNamed(std::string_view name) {
  for (int code = 1; code <= static_cast<int>(StatusCode::kOtherQuota); ++code) {
    if (StatusCodeName(static_cast<StatusCode>(code)) == name) return static_cast<StatusCode>(code);
  }
  return StatusCode::kIoError;
}

}  // namespace

std::string AbstractName(const std::string& store, const std::string& device) {
  // The device number alone is not unique: another daemon that is still closing its store may use
  // it.
  return fmt::format("siltfs/{}/{:016x}", device, Checksum(AsBytes(store)));
}

std::string EncodeRequest(const Request& request) {
  Json json = {{"command", request.command}};
  if (!request.arguments.is_null()) json["arguments"] = request.arguments;
  return ToLine(json);
}

Result<Request> DecodeRequest(std::string_view line) {
  const Json json = Parse(line);
  if (!json.is_object())
    return Status(StatusCode::kInvalidArgument, "the request is not a JSON object");
  const auto command = json.find("command");
  if (command == json.end() || !command->is_string()) {
    return Status(StatusCode::kInvalidArgument, "the request names no command");
  }
  return Request{.command = command->get<std::string>(),
                 .arguments = json.value("arguments", Json())};
}

std::string EncodeResponse(const Result<Json>& result) {
  if (result.ok()) return ToLine({{"ok", true}, {"result", *result}});
  const Status& status = result.status();
  return ToLine(
      {{"ok", false}, {"code", StatusCodeName(status.code())}, {"error", status.ToString()}});
}

Result<Json> DecodeResponse(std::string_view line) {
  const Json json = Parse(line);
  const auto is = [&](const char* key, Json::value_t type) {
    return json.contains(key) && json[key].type() == type;
  };
  if (!json.is_object() || !is("ok", Json::value_t::boolean)) {
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood");
  }
  if (json["ok"].get<bool>()) return json.value("result", Json());
  if (!is("code", Json::value_t::string) || !is("error", Json::value_t::string)) {
    return Status(StatusCode::kCorruption, "the daemon's answer is not understood");
  }
  return Status(CodeNamed(json["code"].get<std::string>()), json["error"].get<std::string>());
}

}  // namespace siltfs::control
