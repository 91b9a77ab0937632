// How commands wait for a daemon that has closed its store but not yet unlocked it.
#include "tools/siltfs/store_holder.h"

#include "fs/open/store_layout.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

Status Locked(const std::string& store) {
  return Status(StatusCode::kInUse, "is locked").At(LockPath(store));
}

TEST_CASE("a store is opened again while its lock is held and no holder can be found") {
  const TemporaryDirectory store;  // as if the holder ended between the attempt and the search
  int attempts = 0;
  const Result<int> opened = OpenWhenFree(store.path(), [&]() -> Result<int> {
    if (++attempts < 4) return Locked(store.path());
    return attempts;
  });
  REQUIRE_OK(opened);
  CHECK(*opened == 4);
}

TEST_CASE("a store is opened once if it fails for another reason than its lock") {
  const TemporaryDirectory store;
  for (const Status& failure :
       {Status(StatusCode::kCorruption, "is damaged").At(store.path()),
        Status(StatusCode::kInUse, "is mounted").At(store.path()), Status::Ok()}) {
    int attempts = 0;
    const Status outcome = OpenWhenFree(store.path(), [&] {
      ++attempts;
      return failure;
    });
    CHECK(outcome.code() == failure.code());
    CHECK(attempts == 1);
  }
}

TEST_CASE("a store is opened once if a program that is no daemon holds its lock") {
  const TemporaryDirectory store;
  const std::unique_ptr<Env> env = NewPosixEnv();
  const auto lock = env->LockFile(LockPath(store.path()));
  REQUIRE_OK(lock);
  int attempts = 0;
  const Status outcome = OpenWhenFree(store.path(), [&] {
    ++attempts;
    return Locked(store.path());
  });
  CHECK(outcome.Is(StatusCode::kInUse));
  CHECK(attempts == 1);
}

}  // namespace
}  // namespace siltfs::testing
