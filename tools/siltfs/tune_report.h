// The parameters of a store, as `siltfs tune` shows them.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/open/tune_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// The parameters that mkfs has set, as JSON. Its keys are a stable interface.
nlohmann::json ParametersToJson(const std::string& store, const Superblock& superblock);

// The same as a table, which ends in a newline.
std::string FormatParameters(const std::string& store, const Superblock& superblock);

// A line for each parameter that has changed, with both values; empty if none has.
std::string FormatChanges(const TunedStore& tuned);

}  // namespace siltfs
