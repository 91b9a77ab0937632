// The output of siltfs fsck: one line per finding and a summary, or one JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fs/repair/repair_store.h"

namespace siltfs {

std::string FormatFinding(const Finding& finding);
// Returns the findings that are left, the lost data, and a summary, as text.
std::string FormatRepair(const std::string& store, const RepairReport& report, bool data);

// Collects findings for a JSON document. Counts all findings, but lists only the first 10,000,
// because the document is made in memory.
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
// Returns the JSON keys besides "error" for a check that failed or was interrupted. They include
// the findings that were made before.
nlohmann::json DetailsOfFailure(const std::string& store, const FindingList& findings);

}  // namespace siltfs
