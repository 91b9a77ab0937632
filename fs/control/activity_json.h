// What a store is doing as JSON: the answer to the command "activity" (protocol.h).
#pragma once

#include <nlohmann/json.hpp>

#include "fs/interface/activity.h"
#include "store/base/result.h"

namespace siltfs {

nlohmann::json ToJson(const StoreActivityReport& activity);

// kCorruption if a key is missing or of another type. Unknown keys are ignored.
Result<StoreActivityReport> ActivityFromJson(const nlohmann::json& json);

}  // namespace siltfs
