// A directory of temporary names inside a directory that an export fills. Entries that cannot be
// made without a name are made here, and renamed when they are complete.
//
// Its owner holds a lock on it (flock). The kernel releases the lock when the owner ends, even if
// it is killed. So another run can tell the staging directories of runs that are gone from those
// that are in use. Only this user can open the directory, so no other user can hold the lock.
//
// Thread-safety: every call from any thread. Ownership: borrows the parent's descriptor. The
// destructor removes the directory, which must be empty by then. If the file system has no locks,
// everything works, but RemoveAbandoned removes nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class StagingDirectory {
 public:
  // Makes a directory in `parent`.
  static Result<std::unique_ptr<StagingDirectory>> Make(const Descriptor& parent);
  // Removes what runs that are gone have left in `parent`. A later run tries again what fails.
  static void RemoveAbandoned(const Descriptor& parent);
  ~StagingDirectory();
  StagingDirectory(const StagingDirectory&) = delete;
  StagingDirectory& operator=(const StagingDirectory&) = delete;

  const Descriptor& fd() const { return fd_; }
  // A name that was not used before.
  std::string NewName() { return std::to_string(next_++); }

 private:
  StagingDirectory(const Descriptor& parent, std::string name, Descriptor fd)
      : parent_(parent), name_(std::move(name)), fd_(std::move(fd)) {}

  const Descriptor& parent_;
  const std::string name_;
  const Descriptor fd_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace siltfs
