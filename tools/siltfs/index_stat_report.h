// The statistics of a chunk index as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// Returns text that ends in a newline. It has totals, a line for each kind of the index's component
// stores, and a line for each component store. `statistics` is a result of IndexToJson.
std::string FormatIndexStatReport(const nlohmann::json& statistics);

}  // namespace siltfs
