#include "tools/siltfs/exit_code.h"

#include "tests/support/catch.h"

namespace siltfs {
namespace {

int CodeOf(StatusCode code) {
  return static_cast<int>(
      ExitCodeOf(code == StatusCode::kOk ? Status() : Status(code, "for a test")));
}

TEST_CASE("Exit codes are those of the documented contract") {
  CHECK(CodeOf(StatusCode::kOk) == 0);
  CHECK(CodeOf(StatusCode::kNotEmpty) == 1);
  CHECK(CodeOf(StatusCode::kIoError) == 1);
  CHECK(CodeOf(StatusCode::kNoSpace) == 1);
  CHECK(CodeOf(StatusCode::kInvalidArgument) == 2);
  CHECK(CodeOf(StatusCode::kNotFound) == 10);
  CHECK(CodeOf(StatusCode::kInUse) == 11);
  CHECK(CodeOf(StatusCode::kNeedsNewer) == 12);
  CHECK(CodeOf(StatusCode::kCorruption) == 13);
  CHECK(CodeOf(StatusCode::kInterrupted) == 130);
}

TEST_CASE("mount(8) gets its own bits") {
  const auto to_mount = [](ExitCode code) { return static_cast<int>(ToMountHelperCode(code)); };
  CHECK(to_mount(ExitCode::kDone) == 0);
  CHECK(to_mount(ExitCode::kUsage) == 1);
  CHECK(to_mount(ExitCode::kInterrupted) == 8);
  CHECK(to_mount(ExitCode::kFailed) == 32);
  CHECK(to_mount(ExitCode::kNoStore) == 32);
  CHECK(to_mount(ExitCode::kInUse) == 32);
}

TEST_CASE("fsck(8) gets its own bits, too") {
  const auto to_fsck = [](StatusCode code) {
    return static_cast<int>(
        ToFsckCode(code == StatusCode::kOk ? Status() : Status(code, "for a test")));
  };
  CHECK(to_fsck(StatusCode::kOk) == 0);
  CHECK(to_fsck(StatusCode::kCorruption) == 4);
  CHECK(to_fsck(StatusCode::kNotFound) == 8);
  CHECK(to_fsck(StatusCode::kInUse) == 8);
  CHECK(to_fsck(StatusCode::kNeedsNewer) == 8);
  CHECK(to_fsck(StatusCode::kIoError) == 8);
  CHECK(to_fsck(StatusCode::kInterrupted) == 32);
}

}  // namespace
}  // namespace siltfs
