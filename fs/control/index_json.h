// The figures of a chunk index as JSON: the one place that knows the keys of `siltfs index stat
// --json`, and of `index` in `siltfs stat --json`. They are stable interface.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/control/stats_json.h"
#include "index/chunk_index.h"

namespace siltfs {

// With one element of "stores" for all component stores of a kind, of which there may be hundreds.
nlohmann::json IndexSummaryToJson(const IndexStats& index);

// With those as "kinds", and with each store in "stores". `daemon` is empty for an unmounted store;
// its keys are then null.
nlohmann::json IndexToJson(const IndexStats& index, const std::string& store,
                           const std::optional<DaemonInfo>& daemon);

}  // namespace siltfs
