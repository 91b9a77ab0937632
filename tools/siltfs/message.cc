#include <fmt/ostream.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {

void Say(Surroundings& surroundings, std::string_view sentence) {
  surroundings.err << fmt::format("siltfs: {}\n", Printable(sentence)) << std::flush;
}

void Warn(Surroundings& surroundings, std::string_view sentence) {
  Say(surroundings, fmt::format("warning: {}", sentence));
}

void SayFailure(Surroundings& surroundings, std::string_view sentence,
                const nlohmann::json& details) {
  Say(surroundings, sentence);
  if (!surroundings.json) return;
  nlohmann::json document = details;
  document["error"] = sentence;
  // The document is printed in one line, because it may follow a stream of one-line documents.
  surroundings.out << document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                   << "\n"
                   << std::flush;
}

ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence) {
  SayFailure(surroundings, sentence, nlohmann::json::object());
  return code;
}

ExitCode Fail(Surroundings& surroundings, const Status& status) {
  return Fail(surroundings, ExitCodeOf(status), status.ToString());
}

void PrintJson(Surroundings& surroundings, const nlohmann::json& document) {
  surroundings.out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n"
                   << std::flush;
}

}  // namespace siltfs
