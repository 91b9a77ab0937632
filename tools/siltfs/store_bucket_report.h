// The bucket of a store, as `siltfs stat` shows it.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fs/bucket/store_bucket.h"

namespace siltfs {

// Its keys are a stable interface (docs/bucket.md).
nlohmann::json ToJson(const StoreBucketStats& bucket);

}  // namespace siltfs
