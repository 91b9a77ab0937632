// The exit codes of plugins for Nagios and similar monitoring systems.
#pragma once

#include <cstdint>

namespace siltfs {

enum class HealthState : uint8_t { kOk = 0, kWarning = 1, kCritical = 2, kUnknown = 3 };

}  // namespace siltfs
