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

// What fsck(8) expects of its checkers: bits, too.
enum class FsckCode : int {
  kClean = 0,
  kCorrected = 1,
  kReboot = 2,
  kUncorrected = 4,
  kFailed = 8,        // the check could not be done
  kUsage = 16,        //
  kInterrupted = 32,  //
  kLibrary = 128,
};

// Of what kept a check from being done.
FsckCode ToFsckCode(const Status& status);

}  // namespace siltfs
