// Settling a store on request, and its outcome as JSON: the one place that knows the keys of
// `siltfs settle --json`. They are stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Settles all that awaits it, and says what came of it. Errors: FileSystem::Settle's.
Result<nlohmann::json> SettleStore(FileSystem& file_system, const std::string& store);

}  // namespace siltfs
