// The statistics of a chunk index as JSON. Only this code defines the keys of `siltfs index stat
// --json` and of `index` in `siltfs stat --json`, a stable interface.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/control/stats_json.h"
#include "index/chunk_index.h"

namespace siltfs {

// "stores" has one element per kind of component store; a kind may have hundreds of stores.
nlohmann::json IndexSummaryToJson(const IndexStats& index);

// "kinds" has one element per kind, "stores" one per component store. `daemon` is empty for an
// unmounted store; its keys are then null.
nlohmann::json IndexToJson(const IndexStats& index, const std::string& store,
                           const std::optional<DaemonInfo>& daemon);

}  // namespace siltfs
