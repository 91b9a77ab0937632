// Runs the siltfs program with a store that is on the lower file system.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/crash/kill/process.h"

namespace siltfs::blocktest {

// The result of `siltfs fsck -n`.
struct CheckReport {
  int code = 0;
  std::string text;  // its findings, or why it failed
  bool clean() const { return code == 0; }
};

// Not thread-safe.
class Product {
 public:
  struct Options {
    std::string siltfs;      // the program
    std::string store;       // a directory
    std::string mountpoint;  // a directory
    std::string scratch;     // for messages and the daemon's log
  };
  explicit Product(Options options) : options_(std::move(options)) {}

  // Each function runs a siltfs command on the store. `environment` holds strings NAME=VALUE for
  // the daemon.
  killtest::Ended Make() const;
  killtest::Ended Mount(const std::vector<std::string>& environment = {}) const;
  killtest::Ended Unmount() const;
  CheckReport Check(bool data) const;
  bool IsMounted() const;
  // Returns the last lines of the daemon's log.
  std::string LogTail() const;
  void ClearLog() const;

  // Removes the mount if it is still there. Then waits until the daemon has ended, and kills it if
  // that takes longer than `patience`. Returns the daemon's exit code. More exactly, this is the
  // highest code of all children that this process has not waited for.
  int Finish(std::chrono::seconds patience) const;

  const Options& options() const { return options_; }

 private:
  std::string LogPath() const { return options_.scratch + "/log"; }

  const Options options_;
};

}  // namespace siltfs::blocktest
