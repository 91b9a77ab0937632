// What commands print under --json: one document, be it of an outcome or of a failure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tools/siltfs/command.h"

namespace siltfs {

// Prints the document on standard output and flushes it: a signal may end the process at any time
// once its handling by the command is over. Bytes that are not UTF-8, as in names of files, are
// replaced by U+FFFD.
void PrintJson(Surroundings& surroundings, const nlohmann::json& document);

// What Fail does, with the keys of `details` (an object) in the document besides "error".
void SayFailure(Surroundings& surroundings, std::string_view sentence,
                const nlohmann::json& details);

}  // namespace siltfs
