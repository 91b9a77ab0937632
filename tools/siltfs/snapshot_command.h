// What the subcommands of `siltfs snapshot`, `siltfs send` and `siltfs receive` share.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "fs/control/diff_session.h"
#include "fs/control/transfer_json.h"
#include "store/base/result.h"
#include "store/env/piped_streams.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/long_command.h"

namespace siltfs {

// A store, mounted or not, on which the subcommand works.
class SnapshotPlace {
 public:
  virtual ~SnapshotPlace() = default;
  // Runs one command (fs/control/snapshot_json.h).
  virtual Result<nlohmann::json> Run(const nlohmann::json& arguments) = 0;
  // Visits the differences between two states. Returns their number as "changes".
  virtual Result<nlohmann::json> Diff(const WantedDiff& wanted,
                                      const std::function<Status(const PathChange&)>& visit) = 0;
  // Transfers a snapshot through `pipes` (fs/control/transfer_session.h).
  virtual Result<nlohmann::json> Send(const WantedSend& wanted, PipedStreams& pipes,
                                      const std::function<Status()>& check) = 0;
  virtual Result<nlohmann::json> Receive(const WantedReceive& wanted, PipedStreams& pipes,
                                         const std::function<Status()>& check) = 0;
  // The transfers that ended early (fs/control/transfer_json.h).
  virtual Result<nlohmann::json> Unfinished() = 0;
  virtual Result<nlohmann::json> Abandon(const std::string& name) = 0;
  // Makes everything that programs have written so far part of the next snapshot.
  virtual Status Sync() = 0;
};

enum class SnapshotAccess : uint8_t { kRead, kChange };

struct SnapshotUse {
  std::string place;  // of the store
  SnapshotAccess access = SnapshotAccess::kRead;
  std::string command;     // "snapshot create"
  std::string afterwards;  // what is true after an interruption, for the message
  bool quiet = false;      // show no progress
};

// Calls `use` with the store, and shows progress meanwhile. If the store is not mounted, it is
// opened, and closed afterwards; with kRead nothing is written. kInterrupted after a signal. Call
// it before any thread starts.
Result<nlohmann::json> WithSnapshots(
    Surroundings& surroundings, const SnapshotUse& wanted,
    const std::function<Result<nlohmann::json>(SnapshotPlace&, LongCommand&)>& use);

std::function<ExitCode()> ConfigureSnapshotDiff(CLI::App& app, Surroundings& surroundings);
std::function<ExitCode()> ConfigureSnapshotPrune(CLI::App& app, Surroundings& surroundings);

}  // namespace siltfs
