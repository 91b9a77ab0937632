// The statistics of a chunk index as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// `figures` is made by IndexToJson. Returns totals, a line for each kind of store and one for each
// store, ending in a newline.
std::string FormatIndexStatReport(const nlohmann::json& statistics);

}  // namespace siltfs
