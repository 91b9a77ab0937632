// Collects a store's garbage on request and returns the result as JSON. Only this code defines the
// keys of `siltfs gc --json`, a stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"

namespace siltfs {

// Collects garbage; with `dry_run` only reports the expected result. Errors:
// StoreMaintenance::CollectGarbage's.
Result<nlohmann::json> CollectGarbageOf(StoreMaintenance& maintenance, const std::string& store,
                                        bool dry_run);

}  // namespace siltfs
