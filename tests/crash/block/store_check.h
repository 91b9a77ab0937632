// Decides whether a store on a device that lost its power, or failed for a while, still has all
// that was promised.
#pragma once

#include <string>
#include <vector>

#include "tests/crash/block/recording.h"

namespace siltfs::blocktest {

struct StoreVerdict {
  std::vector<std::string> problems;  // a sentence each; empty: all is well
  // The lower file system did not survive; nothing is said of the store.
  std::string lower_failure;
  // Writes that returned and are not there, of those that were not promised.
  uint64_t operations_gone = 0;
  uint64_t kept_unasked = 0;
};

struct StoreDemand {
  uint64_t position = 0;    // of the log: what was promised until then
  bool everything = false;  // all that returned without an error must be there
  bool data = false;        // the check before the mount reads all data
};

// Attaches what the FUSE disk serves, mounts the lower file system, checks the store, mounts it,
// compares, changes something, unmounts, and checks again. Leaves nothing attached. Throws Failure
// for what is neither the store's fault nor the lower file system's.
StoreVerdict CheckStore(Bench& bench, const Recording& recording, const StoreDemand& demand);

}  // namespace siltfs::blocktest
