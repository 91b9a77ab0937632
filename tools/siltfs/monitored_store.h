// The statistics of a store for monitoring: unlike `siltfs stat`, a mount whose daemon has crashed
// is a failure, even if the store's files can be read.
//
// Thread-safety: from any thread.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "fs/control/client.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "tools/siltfs/served_mount.h"

namespace siltfs {

// Asks the daemon for the statistics (fs/control/stats_json.h). If the store is not mounted, reads
// its files, and writes nothing. Errors: kStale if the mount of the address has no daemon; others
// as for control::Ask, and as when opening the store.
Result<nlohmann::json> ReadMonitoredStatistics(Env& env, const control::DaemonAddress& address,
                                               const control::Patience& patience = {});

// One word, or a few, for the state that the statistics show: "ok", "damaged", "failed" (a failure
// made the store read-only) or "rebuilding" (its index).
std::string_view HealthWord(const nlohmann::json& statistics);
// The same for a mount whose daemon could not be asked: "crashed", "closing", "not permitted" or
// "not answering".
std::string_view HealthWord(const Status& failure);

}  // namespace siltfs
