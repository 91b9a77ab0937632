// The figures of a store as JSON: the one place that knows the keys of `siltfs stat --json`. They
// are stable interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/core/stats.h"

namespace siltfs {

// What is known of a store's daemon, beyond the figures themselves.
struct DaemonInfo {
  int64_t pid = 0;
  std::string mountpoint;
};

// `daemon` is empty for an unmounted store; its keys are then null.
nlohmann::json ToJson(const FileSystemStats& stats, const std::string& store,
                      const std::optional<DaemonInfo>& daemon);

}  // namespace siltfs
