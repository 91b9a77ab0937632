// Recompresses a store on request and returns the result as JSON. Only this code defines the keys
// of `siltfs settle --json`, a stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Recompresses all segments that await recompression and returns the result. Errors:
// FileSystem::Recompress's.
Result<nlohmann::json> RecompressStore(FileSystem& file_system, const std::string& store);

}  // namespace siltfs
