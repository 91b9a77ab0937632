// The statistics of a store as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// Returns a table that ends in a newline. ToJson(FileSystemStats) makes `statistics`.
std::string FormatStatReport(const nlohmann::json& statistics);

}  // namespace siltfs
