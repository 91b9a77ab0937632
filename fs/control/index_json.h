// The statistics of a chunk index as JSON. Only this code defines the keys of `siltfs index stat
// --json` and of `index` in `siltfs stat --json`, a stable interface.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/control/stats_json.h"
#include "index/chunk_index.h"

namespace siltfs {

// In the result, "stores" has one element for each kind of store in the index (LogStore, HashStore
// and so on), because there may be hundreds of stores of one kind.
nlohmann::json IndexSummaryToJson(const IndexStats& index);

// In the result, "kinds" has one element for each kind of store in the index, and "stores" has one
// for each store. `daemon` is empty if the store is not mounted; "mountpoint" and "pid" are then
// null.
nlohmann::json IndexToJson(const IndexStats& index, const std::string& store,
                           const std::optional<DaemonInfo>& daemon);

}  // namespace siltfs
