// The statistics of a chunk index as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// Returns text that ends in a newline: totals, a line for each kind of store, and a line for each
// store. IndexToJson makes `statistics`.
std::string FormatIndexStatReport(const nlohmann::json& statistics);

}  // namespace siltfs
