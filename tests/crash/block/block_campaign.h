// Records loads, cuts the power at many places of each record, and judges what is left; or lets the
// device fail while the load runs.
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
  uint64_t faults = 0;  // fault runs instead of cuts
  uint64_t seed = 1;
  uint64_t most_seconds = 0;  // 0: no limit
  bool stop_at_first = false;
  std::string siltfs;
  std::string directory;  // exists, empty; not on a file system that this test makes
  std::string save;       // images of what fails; nothing is kept if empty
  std::string injection;  // what the daemon does not sync; empty: it syncs all
  std::string shim;       // the library that leaves syncs out
};

struct CampaignResult {
  uint64_t recordings = 0;
  uint64_t cuts = 0;
  uint64_t faults = 0;
  uint64_t illegal = 0;
  uint64_t first_illegal = 0;  // the number of the first illegal cut, from 1
  uint64_t lower_failures = 0;
  uint64_t records = 0;  // of the devices
  uint64_t flushes = 0;
  uint64_t bytes = 0;
  uint64_t operations = 0;
  uint64_t syncs = 0;
  uint64_t transactions = 0;
  uint64_t operations_gone = 0;  // that were not promised, over all cuts
  uint64_t failed_calls = 0;     // of the device
  uint64_t stores_failed = 0;    // fault runs whose unmount said so
  double recording_seconds = 0;
  double cut_seconds = 0;
  std::vector<std::string> problems;
};

// Throws Failure and Interrupted.
CampaignResult RunCampaign(const CampaignOptions& options);

}  // namespace siltfs::blocktest
