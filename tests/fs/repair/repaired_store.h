// Repairs a test's store, and checks the result.
#pragma once

#include "fs/repair/repair_store.h"
#include "tests/fs/check/checked_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

// Owner of directories that a repair recreates.
inline constexpr FileOwner kRepairOwner{.uid = 2000, .gid = 3000};

inline RepairReport Repair(CheckedStore& store, RepairMode mode, bool data = false) {
  RepairOptions options;
  options.check.store = store.path();
  options.check.data = data;
  options.mode = mode;
  options.owner = kRepairOwner;
  auto report = RepairStore(store.fixture().env(), options);
  REQUIRE_OK(report);
  return std::move(report).value();
}

// The report as text, for INFO.
inline std::string Describe(const RepairReport& report) {
  std::string text;
  for (const RepairedFinding& one : report.findings) {
    text += (one.repaired ? "repaired " : "left ") + one.finding.code + " " + one.finding.path +
            ": " + one.finding.message + "\n";
  }
  for (const LostContent& lost : report.lost) {
    text += "lost " + lost.path + " at " + std::to_string(lost.range.offset) + ": " +
            std::to_string(lost.range.length) + "\n";
  }
  return text;
}

// Repairs the store. Requires that the repair found exactly these codes and repaired them all, and
// that the next check finds nothing. The report may count several findings of one place.
inline RepairReport RequireCodesRepaired(CheckedStore& store, RepairMode mode, const Codes& codes,
                                         bool data = false) {
  RepairReport report = Repair(store, mode, data);
  INFO(Describe(report));
  Codes found;
  for (const RepairedFinding& one : report.findings) {
    found.insert(one.finding.code);
    CHECK(one.repaired);
  }
  CHECK(found == codes);
  CHECK(report.left == 0);
  RequireCodes(store.Check(true), {});
  return report;
}

// The same, and requires that the report has each finding.
inline RepairReport RequireRepaired(CheckedStore& store, RepairMode mode, const Codes& codes,
                                    bool data = false) {
  RepairReport report = RequireCodesRepaired(store, mode, codes, data);
  INFO(Describe(report));
  CHECK(report.found == report.findings.size());
  return report;
}

}  // namespace siltfs::testing
