// Checks the statistics that another process has sent. The process may be a daemon of another
// version, or a program of any user that claims to serve a store.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <nlohmann/json.hpp>

#include "store/base/result.h"

namespace siltfs {

// Returns the document, in which then each key of stats_json.h has a value of its type. A key that
// may be null, and that an earlier version does not send, becomes null. kNeedsNewer if another key
// is missing, or if a value has another type.
Result<nlohmann::json> CheckStats(nlohmann::json statistics);

}  // namespace siltfs
