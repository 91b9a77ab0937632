// Collects a store's garbage on request and returns the result as JSON. Only this code defines the
// keys of `siltfs gc --json`, a stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Collects garbage; with `dry_run` only reports the expected result. Errors:
// FileSystem::CollectGarbage's.
Result<nlohmann::json> CollectGarbageOf(FileSystem& file_system, const std::string& store,
                                        bool dry_run);

}  // namespace siltfs
