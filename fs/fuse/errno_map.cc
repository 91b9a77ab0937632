#include "fs/fuse/errno_map.h"

#include <cerrno>

namespace siltfs {

int ErrnoOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kNotFound:
      return ENOENT;
    case StatusCode::kAlreadyExists:
      return EEXIST;
    case StatusCode::kNotADirectory:
      return ENOTDIR;
    case StatusCode::kIsADirectory:
      return EISDIR;
    case StatusCode::kNotEmpty:
      return ENOTEMPTY;
    case StatusCode::kNameTooLong:
      return ENAMETOOLONG;
    case StatusCode::kTooManyLinks:
      return EMLINK;
    case StatusCode::kFileTooLarge:
      return EFBIG;
    case StatusCode::kInvalidArgument:
      return EINVAL;
    case StatusCode::kNotPermitted:
      return EPERM;
    case StatusCode::kAccessDenied:
      return EACCES;
    case StatusCode::kReadOnly:
      return EROFS;
    case StatusCode::kNoSpace:
      return ENOSPC;
    case StatusCode::kIoError:
      return EIO;
    case StatusCode::kCorruption:
      return EIO;
    case StatusCode::kNeedsNewer:
      return EIO;
    case StatusCode::kInUse:
      return EBUSY;
    case StatusCode::kNoAttribute:
      return ENODATA;
    case StatusCode::kBufferTooSmall:
      return ERANGE;
    case StatusCode::kUnsupported:
      return EOPNOTSUPP;
    case StatusCode::kStale:
      return ESTALE;
    case StatusCode::kInterrupted:
      return EINTR;
    case StatusCode::kAborted:
      return EIO;
    case StatusCode::kOutOfMemory:
      return ENOMEM;
    case StatusCode::kQuotaExceeded:
      return EDQUOT;
    case StatusCode::kOtherQuota:
      return EXDEV;
  }
  return EIO;
}

}  // namespace siltfs
