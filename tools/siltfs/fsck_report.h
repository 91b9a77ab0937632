// What siltfs fsck prints: a line a finding and a summary, or one JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fs/check/check_store.h"

namespace siltfs {

// Of findings in a JSON document, which is made in memory; all are counted.
inline constexpr size_t kMostFindingsListed = 10'000;

std::string FormatFinding(const Finding& finding);
std::string FormatSummary(const std::string& store, const CheckReport& report, bool data);

nlohmann::json FindingToJson(const Finding& finding);
nlohmann::json CheckToJson(const std::string& store, const CheckReport& report, bool data,
                           nlohmann::json findings);

}  // namespace siltfs
