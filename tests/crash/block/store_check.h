// Decides whether a store on a device that lost its power, or failed for a while, still has
// everything that was promised.
#pragma once

#include <string>
#include <vector>

#include "tests/crash/block/recording.h"

namespace siltfs::blocktest {

struct StoreVerdict {
  std::vector<std::string> problems;  // a sentence each; empty if there are none
  // The lower file system did not survive, so the store was not judged.
  std::string lower_failure;
  // Lost operations that returned but were not promised, and kept ones without a promise.
  uint64_t operations_gone = 0;
  uint64_t kept_unasked = 0;
};

struct StoreDemand {
  uint64_t position = 0;    // of the log: promises made until then count
  bool everything = false;  // all operations that returned without an error must be there
  bool data = false;        // the check before the mount reads all data
};

// Attaches the FUSE disk, mounts the lower file system, checks the store, mounts it, compares,
// changes something, unmounts, and checks again. Leaves nothing attached. Throws Failure for errors
// of neither the store nor the lower file system.
StoreVerdict CheckStore(Bench& bench, const Recording& recording, const StoreDemand& demand);

}  // namespace siltfs::blocktest
