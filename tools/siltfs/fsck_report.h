// The output of siltfs fsck: one line per finding and a summary, or one JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fs/repair/repair_store.h"

namespace siltfs {

std::string FormatFinding(const Finding& finding);
// The findings that are left, the lost data, and a summary.
std::string FormatRepair(const std::string& store, const RepairReport& report, bool data);

// Findings for a JSON document: only the first ones, as it is made in memory, and their number.
class FindingList {
 public:
  void Add(const Finding& finding);

  uint64_t count() const { return count_; }
  const nlohmann::json& listed() const { return listed_; }

 private:
  uint64_t count_ = 0;
  nlohmann::json listed_ = nlohmann::json::array();
};

nlohmann::json RepairToJson(const std::string& store, const RepairReport& report, bool data,
                            const FindingList& findings);
// For a check that failed or stopped early: the keys besides "error", with the findings until then.
nlohmann::json DetailsOfFailure(const std::string& store, const FindingList& findings);

}  // namespace siltfs
