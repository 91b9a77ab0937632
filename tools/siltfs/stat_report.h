// The statistics of a store as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "store/env/terminal.h"

namespace siltfs {

// Returns the report, which ends in a newline. ToJson(FileSystemStats) makes `statistics`. `now`:
// seconds since 1970.
std::string FormatStatReport(const nlohmann::json& statistics, const TextStyle& style, double now);

}  // namespace siltfs
