#include "fs/control/survey_session.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "fs/control/protocol.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// So often a line is sent. Sending it fails if the client has left.
constexpr std::chrono::milliseconds kInterval{200};
// The client looks this often whether its user has interrupted it.
constexpr std::chrono::milliseconds kClientInterval{200};
// A client that takes no line for this long is given up. It would keep garbage collection waiting.
constexpr std::chrono::seconds kPatience{60};

constexpr std::array<std::string_view, 3> kNames = {"files", "recipes", "chunks"};

Status Malformed() { return {StatusCode::kInvalidArgument, "a message of a survey is malformed"}; }

std::optional<uint64_t> NumberIn(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

}  // namespace

std::string EncodeSurveyProgress(const SurveyProgress& progress) {
  return Json{{"step", progress.step},
              {"name", progress.name},
              {"done", progress.done},
              {"total", progress.total}}
      .dump();
}

Result<std::optional<SurveyProgress>> DecodeSurveyProgress(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Malformed();
  if (object.contains("ok")) return std::optional<SurveyProgress>();
  const auto step = NumberIn(object, "step");
  const auto done = NumberIn(object, "done");
  const auto total = NumberIn(object, "total");
  const auto name = object.find("name");
  if (!step || *step > UINT32_MAX || !done || !total) return Malformed();
  if (name == object.end() || !name->is_string()) return Malformed();
  SurveyProgress progress = {.step = static_cast<unsigned>(*step), .done = *done, .total = *total};
  const auto known = std::ranges::find(kNames, name->get<std::string>());
  if (known != kNames.end()) progress.name = *known;
  return std::optional(progress);
}

Result<Json> ServeSurvey(StoreMaintenance& maintenance, const std::string& store,
                         const DaemonInfo& daemon, LocalStream& stream,
                         const std::function<bool()>& stopped) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  Clock::time_point last = Clock::now();
  return SurveyToJson(maintenance, store, daemon, [&](const SurveyProgress& progress) -> Status {
    if (stopped()) return {StatusCode::kAborted, "the store is being closed"};
    if (Clock::now() < last + kInterval) return Status::Ok();
    last = Clock::now();
    return stream.WriteAll(EncodeSurveyProgress(progress) + "\n");
  });
}

Result<Json> ReceiveSurvey(LocalStream& stream, const SurveyProgressFunction& on_progress) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kClientInterval));
  SurveyProgress last{.name = kNames.front()};
  while (true) {
    SILTFS_RETURN_IF_ERROR(on_progress(last));
    const auto line = stream.ReadLine(control::kMaxResponseBytes);
    if (line.status().Is(StatusCode::kInterrupted)) continue;  // the daemon is only silent
    SILTFS_RETURN_IF_ERROR(line.status());
    if (!*line) return Status(StatusCode::kAborted, "the daemon of the mount has ended");
    SILTFS_ASSIGN_OR_RETURN(const auto progress, DecodeSurveyProgress(**line));
    if (!progress) return control::DecodeResponse(**line);
    last = *progress;
  }
}

}  // namespace siltfs
