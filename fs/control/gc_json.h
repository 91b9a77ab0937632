// Collecting a store's garbage on request, and its outcome as JSON: the one place that knows the
// keys of `siltfs gc --json`. They are stable interface.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/file_system.h"
#include "store/base/result.h"

namespace siltfs {

// Collects, or says what that would do. Errors: FileSystem::CollectGarbage's.
Result<nlohmann::json> CollectGarbageOf(FileSystem& file_system, const std::string& store,
                                        bool dry_run);

}  // namespace siltfs
