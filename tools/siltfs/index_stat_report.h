// The figures of a chunk index for a person to read.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// `figures` as made by IndexToJson. Totals, a line for each kind of store and one for each store,
// ending in a newline.
std::string FormatIndexStatReport(const nlohmann::json& figures);

}  // namespace siltfs
