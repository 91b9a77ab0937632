// Scrubs a store on request and returns the result as JSON. Only this code defines the keys of
// `siltfs scrub --json`, a stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/store_maintenance.h"
#include "store/base/result.h"

namespace siltfs {

// Verifies all stored data and returns the findings. Errors: StoreMaintenance::Scrub's.
Result<nlohmann::json> ScrubStore(StoreMaintenance& maintenance, const std::string& store,
                                  ScrubMode mode);

// Whether a result of ScrubStore reports damage.
bool ReportsDamage(const nlohmann::json& outcome);

}  // namespace siltfs
