// What siltfs fsck prints: a line a finding and a summary, or one JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fs/repair/repair_store.h"

namespace siltfs {

std::string FormatFinding(const Finding& finding);
// What is left of the findings, what is lost, and a summary.
std::string FormatRepair(const std::string& store, const RepairReport& report, bool data);

// Findings for a JSON document, which is made in memory: the first ones, and how many there are.
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
// Of a check that could not be done, or not to its end, besides "error": its findings until then.
nlohmann::json DetailsOfFailure(const std::string& store, const FindingList& findings);

}  // namespace siltfs
