// Scrubbing a store on request, and its outcome as JSON: the one place that knows the keys of
// `siltfs scrub --json`. They are stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Verifies all that is stored, and says what was found. Errors: FileSystem::Scrub's.
Result<nlohmann::json> ScrubStore(FileSystem& file_system, const std::string& store,
                                  ScrubMode mode);

// Whether such an outcome tells of damage.
bool ToldOfDamage(const nlohmann::json& outcome);

}  // namespace siltfs
