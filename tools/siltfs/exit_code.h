// Exit codes of siltfs's commands. The numbers are a stable interface for scripts.
#pragma once

#include "store/base/status.h"

namespace siltfs {

enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kSomeFailed = 3,  // some files could not be copied, or not be counted
  kNoStore = 10,
  kInUse = 11,
  kNeedsNewer = 12,
  kDamaged = 13,
  kInterrupted = 130,
};

// Returns the exit code for the result of an operation on a whole store (make, open, read its
// statistics).
ExitCode ExitCodeOf(const Status& status);

// The exit codes that mount(8) expects of its helpers. Each is one bit, and several may be set.
// siltfs uses only kDone, kUsage, kInterrupted and kFailed.
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

// The exit codes that fsck(8) expects of its checkers. Each is one bit, and several may be set.
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

// Returns the code for a check that failed with `status`.
FsckCode ToFsckCode(const Status& status);

}  // namespace siltfs
