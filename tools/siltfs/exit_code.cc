#include "tools/siltfs/exit_code.h"

namespace siltfs {

ExitCode ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return ExitCode::kDone;
    case StatusCode::kNotFound:
      return ExitCode::kNoStore;
    case StatusCode::kInUse:
      return ExitCode::kInUse;
    case StatusCode::kNeedsNewer:
      return ExitCode::kNeedsNewer;
    case StatusCode::kCorruption:
      return ExitCode::kDamaged;
    case StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    case StatusCode::kInterrupted:
      return ExitCode::kInterrupted;
    default:
      return ExitCode::kFailed;
  }
}

MountHelperCode ToMountHelperCode(ExitCode code) {
  switch (code) {
    case ExitCode::kDone:
      return MountHelperCode::kDone;
    case ExitCode::kUsage:
      return MountHelperCode::kUsage;
    case ExitCode::kInterrupted:
      return MountHelperCode::kInterrupted;
    default:
      return MountHelperCode::kFailed;
  }
}

FsckCode ToFsckCode(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return FsckCode::kClean;
    case StatusCode::kCorruption:
      return FsckCode::kUncorrected;
    case StatusCode::kInterrupted:
      return FsckCode::kInterrupted;
    default:
      return FsckCode::kFailed;
  }
}

}  // namespace siltfs
