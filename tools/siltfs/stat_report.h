// The statistics of a store as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// `figures` is made by ToJson(FileSystemStats). Returns a table, ending in a newline.
std::string FormatStatReport(const nlohmann::json& statistics);

}  // namespace siltfs
