// The output of commands under --json: one document, for an outcome or a failure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "tools/siltfs/command.h"

namespace siltfs {

// Prints the document on standard output and flushes it: after the command has stopped handling
// signals, one may end the process at any time. Bytes that are not UTF-8, as in names of files, are
// replaced by U+FFFD.
void PrintJson(Surroundings& surroundings, const nlohmann::json& document);

// Like Fail, but adds the keys of `details` (an object) to the document besides "error".
void SayFailure(Surroundings& surroundings, std::string_view sentence,
                const nlohmann::json& details);

}  // namespace siltfs
