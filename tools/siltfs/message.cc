#include <fmt/ostream.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/message_table.h"
#include "tools/siltfs/printable_text.h"

namespace siltfs {

void Say(Surroundings& surroundings, std::string_view sentence) {
  surroundings.err << fmt::format("siltfs: {}\n", Printable(sentence)) << std::flush;
}

void Warn(Surroundings& surroundings, std::string_view sentence) {
  const MessageRow* row = FindMessage(sentence);
  Say(surroundings, row == nullptr ? fmt::format("warning: {}", sentence)
                                   : fmt::format("warning: {} [{}]", sentence, row->id));
}

void SayFailure(Surroundings& surroundings, std::string_view sentence,
                const nlohmann::json& details, ExitCode code) {
  const IdentifiedMessage message = IdentifyFailure(sentence, code);
  Say(surroundings, fmt::format("{} [{}]", message.sentence, message.id));
  if (!surroundings.json) return;
  nlohmann::json document = details;
  document["error"] = message.sentence;
  document["id"] = message.id;
  // The document is printed in one line, because it may follow a stream of one-line documents.
  surroundings.out << document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                   << "\n"
                   << std::flush;
}

ExitCode Fail(Surroundings& surroundings, ExitCode code, std::string_view sentence) {
  SayFailure(surroundings, sentence, nlohmann::json::object(), code);
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
