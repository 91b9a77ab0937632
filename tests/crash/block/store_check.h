// Decides whether a store still has everything that was promised, after its device lost power or
// failed for a while.
#pragma once

#include <string>
#include <vector>

#include "tests/crash/block/recording.h"

namespace siltfs::blocktest {

struct StoreVerdict {
  std::vector<std::string> problems;  // a sentence each; empty if there are none
  // Set if the lower file system did not survive; then the store was not judged.
  std::string lower_failure;
  // operations_gone: operations that returned without a promise and are lost. kept_unasked:
  // operations that survived without a promise.
  uint64_t operations_gone = 0;
  uint64_t kept_unasked = 0;
};

struct StoreDemand {
  uint64_t position = 0;    // length of the log: promises made until then count
  bool everything = false;  // all operations that returned without an error must be there
  bool data = false;        // the check before the mount reads all data
};

// Attaches the FUSE disk, mounts the lower file system and checks the store. Then mounts the store,
// compares its contents, changes something, unmounts, and checks again. Leaves nothing attached.
// Throws Failure for an error that is neither the store's nor the lower file system's.
StoreVerdict CheckStore(Bench& bench, const Recording& recording, const StoreDemand& demand);

}  // namespace siltfs::blocktest
