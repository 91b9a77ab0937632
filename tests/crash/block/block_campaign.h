// Records the device below a load, cuts the power at many places of each recording, and judges the
// surviving state. Alternatively, lets the device fail while the load runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/crash/block/lower_file_system.h"

namespace siltfs::blocktest {

struct CampaignOptions {
  LowerKind kind = LowerKind::kExt4;
  uint64_t cuts = 100;
  uint64_t cuts_of_a_recording = 100;
  uint64_t faults = 0;  // number of fault runs to make instead of cuts; 0: make cuts
  uint64_t seed = 1;
  uint64_t most_seconds = 0;  // 0: no limit
  bool stop_at_first = false;
  std::string siltfs;
  std::string directory;  // exists and is empty; not on a file system that this test makes
  std::string save;       // for images of failing disks; empty: none are kept
  std::string injection;  // which syncs the daemon leaves out; empty: none
  std::string shim;       // the library that leaves syncs out
};

struct CampaignResult {
  uint64_t recordings = 0;
  uint64_t cuts = 0;
  uint64_t faults = 0;
  uint64_t illegal = 0;
  uint64_t first_illegal = 0;  // number of the first illegal cut, from 1
  uint64_t lower_failures = 0;
  uint64_t records = 0;  // in the logs of all devices
  uint64_t flushes = 0;
  uint64_t bytes = 0;
  uint64_t operations = 0;
  uint64_t syncs = 0;
  uint64_t transactions = 0;
  uint64_t operations_gone = 0;  // lost operations without a promise, over all cuts
  uint64_t failed_calls = 0;     // calls that the device failed
  uint64_t stores_failed = 0;    // fault runs with a failure reported by the unmount
  double recording_seconds = 0;
  double cut_seconds = 0;
  std::vector<std::string> problems;
};

// Runs the campaign. Throws Failure and Interrupted.
CampaignResult RunCampaign(const CampaignOptions& options);

}  // namespace siltfs::blocktest
