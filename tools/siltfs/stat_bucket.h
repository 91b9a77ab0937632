// The bucket of a store in the text of `siltfs stat`.
//
// Thread-safety: pure function.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/siltfs/stat_table.h"

namespace siltfs {

// Adds a section for statistics["bucket"] (store_bucket_report.h), if there is such a key. Keys
// that are missing or have another type count as zero or empty: the daemon may be of another
// version. `now`: seconds since 1970.
void AddBucket(const nlohmann::json& statistics, double now, StatTable& table);

}  // namespace siltfs
