// What siltfs's commands say to the shell. Stable interface: scripts rely on the numbers.
#pragma once

#include "store/base/status.h"

namespace siltfs {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNoStore = 10,
  kInUse = 11,
  kNeedsNewer = 12,
  kDamaged = 13,
  kInterrupted = 130,
};

// Of an operation on a store as a whole (make, open, read its figures).
ExitCode ExitCodeOf(const Status& status);

// What mount(8) expects of its helpers: bits, of which siltfs needs these.
enum class MountHelperCode : int {
  kDone = 0,
  kUsage = 1,        // incorrect invocation or permissions
  kSystem = 2,       // system error (out of memory, no /dev/fuse, ...)
  kInternal = 4,     // a bug
  kInterrupted = 8,  // the user interrupted
  kMtab = 16,
  kFailed = 32,  // mount failure
  kSomeSucceeded = 64,
};

MountHelperCode ToMountHelperCode(ExitCode code);

}  // namespace siltfs
