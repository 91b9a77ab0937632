#include "fs/fuse/errno_map.h"

#include <cerrno>
#include <set>

#include "tests/support/catch.h"

namespace siltfs {
namespace {

TEST_CASE("Every failure has an errno, and success has none") {
  CHECK(ErrnoOf(StatusCode::kOk) == 0);
  for (int code = 1; code <= static_cast<int>(StatusCode::kOutOfMemory); ++code) {
    INFO(StatusCodeName(static_cast<StatusCode>(code)));
    CHECK(ErrnoOf(static_cast<StatusCode>(code)) > 0);
  }
}

TEST_CASE("A caller sees what POSIX promises") {
  CHECK(ErrnoOf(StatusCode::kNotFound) == ENOENT);
  CHECK(ErrnoOf(StatusCode::kNotEmpty) == ENOTEMPTY);
  CHECK(ErrnoOf(StatusCode::kReadOnly) == EROFS);
  CHECK(ErrnoOf(StatusCode::kNoSpace) == ENOSPC);
  CHECK(ErrnoOf(StatusCode::kNotPermitted) == EPERM);
  CHECK(ErrnoOf(StatusCode::kFileTooLarge) == EFBIG);
  CHECK(ErrnoOf(StatusCode::kNoAttribute) == ENODATA);
}

TEST_CASE("Damage is an I/O error") {
  CHECK(ErrnoOf(StatusCode::kCorruption) == EIO);
  CHECK(ErrnoOf(StatusCode::kIoError) == EIO);
}

}  // namespace
}  // namespace siltfs
