// The figures of a store for a person to read.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// `figures` as made by ToJson(FileSystemStats). A table, ending in a newline.
std::string FormatStatReport(const nlohmann::json& figures);

}  // namespace siltfs
