// The statistics of a store as JSON. Only this code defines the keys of `siltfs stat --json`, a
// stable interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/interface/stats.h"

namespace siltfs {

// A store's daemon.
struct DaemonInfo {
  int64_t pid = 0;
  std::string mountpoint;
  std::string transport;  // of FUSE requests: "io_uring" or "dev_fuse"; empty if not known yet
};

// `daemon` is empty if the store is not mounted; "mountpoint", "pid" and "transport" are then null.
nlohmann::json ToJson(const FileSystemStats& stats, const std::string& store,
                      const std::optional<DaemonInfo>& daemon);

}  // namespace siltfs
