// The first lines of `siltfs stat`: which store it is, its health, and how its disk is used.
//
// Thread-safety: pure functions, safe to call from any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "store/env/terminal.h"
#include "tools/siltfs/health.h"

namespace siltfs {

// The arguments are those of FormatStatReport. The result ends in a newline.
std::string FormatStatOverview(const nlohmann::json& statistics, const TextStyle& style,
                               double now);

// The state of the store in one sentence: the worst finding, or an overview.
std::string HealthSentence(const HealthReport& report);

}  // namespace siltfs
