// The session "report" (protocol.h), and its messages.
//
// The daemon sends lines about the progress, at least one a second:
//
//   {"step":N,"name":"...","done":N,"total":N}
//
// After the last one it sends the result, the document of survey_json.h. A client that leaves ends
// the survey.
//
// Thread-safety: pure functions, and every call from any thread. Errors: those of SurveyToJson and
// `on_progress`; kInvalidArgument for lines that are no such messages; kAborted if the daemon ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "fs/control/survey_json.h"
#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"
#include "store/env/local_socket.h"

namespace siltfs {

inline constexpr const char* kSurveySession = "report";

// Lines without the newline.
std::string EncodeSurveyProgress(const SurveyProgress& progress);
// nullopt for a line that is no progress, so the result. The name is the step's own, and unknown
// steps have none.
Result<std::optional<SurveyProgress>> DecodeSurveyProgress(std::string_view line);

Result<nlohmann::json> ServeSurvey(StoreMaintenance& maintenance, const std::string& store,
                                   const DaemonInfo& daemon, LocalStream& stream,
                                   const std::function<bool()>& stopped);
// The client's side, after the greeting. Returns the result. Calls `on_progress` at least once a
// second, with the last progress if there is no other.
Result<nlohmann::json> ReceiveSurvey(LocalStream& stream,
                                     const SurveyProgressFunction& on_progress);

}  // namespace siltfs
