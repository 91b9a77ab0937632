#include "fs/fuse/errno_map.h"

#include <cerrno>
#include <set>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("Every failure has an errno, and success has none") {
  CHECK(ErrnoOf(StatusCode::kOk) == 0);
  for (int code = 1; code <= static_cast<int>(StatusCode::kOtherQuota); ++code) {
    INFO(StatusCodeName(static_cast<StatusCode>(code)));
    CHECK(ErrnoOf(static_cast<StatusCode>(code)) > 0);
  }
}

TEST_CASE("A caller gets the errno that POSIX specifies") {
  CHECK(ErrnoOf(StatusCode::kNotFound) == ENOENT);
  CHECK(ErrnoOf(StatusCode::kAlreadyExists) == EEXIST);
  CHECK(ErrnoOf(StatusCode::kNotADirectory) == ENOTDIR);
  CHECK(ErrnoOf(StatusCode::kIsADirectory) == EISDIR);
  CHECK(ErrnoOf(StatusCode::kNotEmpty) == ENOTEMPTY);
  CHECK(ErrnoOf(StatusCode::kNameTooLong) == ENAMETOOLONG);
  CHECK(ErrnoOf(StatusCode::kTooManyLinks) == EMLINK);
  CHECK(ErrnoOf(StatusCode::kFileTooLarge) == EFBIG);
  CHECK(ErrnoOf(StatusCode::kInvalidArgument) == EINVAL);
  CHECK(ErrnoOf(StatusCode::kNotPermitted) == EPERM);
  CHECK(ErrnoOf(StatusCode::kAccessDenied) == EACCES);
  CHECK(ErrnoOf(StatusCode::kReadOnly) == EROFS);
  CHECK(ErrnoOf(StatusCode::kNoSpace) == ENOSPC);
  CHECK(ErrnoOf(StatusCode::kInUse) == EBUSY);
  CHECK(ErrnoOf(StatusCode::kNoAttribute) == ENODATA);
  CHECK(ErrnoOf(StatusCode::kBufferTooSmall) == ERANGE);
  CHECK(ErrnoOf(StatusCode::kUnsupported) == EOPNOTSUPP);
  CHECK(ErrnoOf(StatusCode::kStale) == ESTALE);
  CHECK(ErrnoOf(StatusCode::kInterrupted) == EINTR);
  CHECK(ErrnoOf(StatusCode::kOutOfMemory) == ENOMEM);
  CHECK(ErrnoOf(StatusCode::kQuotaExceeded) == EDQUOT);
  CHECK(ErrnoOf(StatusCode::kOtherQuota) == EXDEV);
}

TEST_CASE("Damage is an I/O error") {
  CHECK(ErrnoOf(StatusCode::kCorruption) == EIO);
  CHECK(ErrnoOf(StatusCode::kIoError) == EIO);
}

}  // namespace
}  // namespace siltfs
