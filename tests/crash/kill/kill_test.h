// The test's loop: runs a load, kills the daemon at a random moment, and mounts the store again.
// Then compares the whole tree with the operations of the load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace siltfs::killtest {

struct KillTestOptions {
  uint64_t rounds = 100;
  uint64_t seed = 1;
  std::string directory;  // exists and is empty
  uint64_t fill_bytes = 0;
  unsigned writers = 4;
  std::string siltfs;
};

struct KillTestResult {
  uint64_t rounds = 0;
  uint64_t kills = 0;           // kills of a daemon under load
  uint64_t recovery_kills = 0;  // kills of a daemon that was mounting after such a kill
  uint64_t clean_unmounts = 0;
  uint64_t checks = 0;  // by siltfs fsck
  uint64_t operations = 0;
  uint64_t operations_kept_unasked = 0;
  uint64_t operations_gone = 0;
  uint64_t torn_tails = 0;
  uint64_t files_verified = 0;
  uint64_t bytes_verified = 0;
  std::vector<double> mount_seconds;  // after kills
  std::vector<std::string> losses;    // a sentence each; empty if there are none
};

// Runs the loop. Throws Interrupted; any other failure counts as a loss. Leaves no daemon and no
// mount.
KillTestResult RunKillTest(const KillTestOptions& options);

}  // namespace siltfs::killtest
