// Recompresses a store on request and returns the result as JSON. Only this code defines the keys
// of `siltfs settle --json`, a stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"

namespace siltfs {

// Recompresses all segments that await recompression and returns the result. Errors:
// StoreMaintenance::Recompress's.
Result<nlohmann::json> RecompressStore(StoreMaintenance& maintenance, const std::string& store);

}  // namespace siltfs
