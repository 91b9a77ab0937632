// The output of commands with --json: one document with a result or with an error.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tools/siltfs/command.h"

namespace siltfs {

// Prints the document on standard output and flushes it at once, because a signal may end the
// process after the command has stopped handling signals. Bytes that are not UTF-8, for example in
// file names, are replaced by U+FFFD.
void PrintJson(Surroundings& surroundings, const nlohmann::json& document);

// Like Fail, but also adds the keys of `details` (an object) to the document. `code` chooses the
// identifier of a sentence that is not in the table of messages.
void SayFailure(Surroundings& surroundings, std::string_view sentence,
                const nlohmann::json& details, ExitCode code = ExitCode::kFailed);

}  // namespace siltfs
