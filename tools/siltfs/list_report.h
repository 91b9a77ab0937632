// The mounted stores as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace siltfs {

// Returns a table with a line for each mount below a line of titles, or an empty text if there are
// no mounts. `mounts` is the list in the document of `siltfs list --json`.
std::string FormatList(const nlohmann::json& mounts);

}  // namespace siltfs
