// What `siltfs send` and `siltfs receive` share.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "store/base/result.h"
#include "store/env/piped_streams.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/snapshot_command.h"

namespace siltfs {

struct TransferUse {
  bool input = false;   // standard input has a stream
  bool output = false;  // standard output has one
};

// Calls `transfer` with the store. SIGINT, SIGTERM and SIGHUP make `check` fail with kInterrupted.
// kInvalidArgument if a stream would come from a terminal or go to one.
Result<nlohmann::json> RunTransfer(
    Surroundings& surroundings, const SnapshotUse& wanted, TransferUse use,
    const std::function<Result<nlohmann::json>(SnapshotPlace& store, PipedStreams& pipes,
                                               const std::function<Status()>& check)>& transfer);

// The surroundings of a command whose standard output has a stream: results go to standard error.
Surroundings WithResultsOnErr(const Surroundings& surroundings);

// One sentence with the totals of a transfer (fs/control/transfer_json.h).
std::string TransferTotals(const nlohmann::json& outcome);

}  // namespace siltfs
