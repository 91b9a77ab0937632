#include "tests/crash/kill/recorder.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::killtest {
namespace {

TEST_CASE("A sync of the old name's directory promises no link in another directory") {
  const siltfs::testing::TemporaryDirectory directory;
  RoundState round;
  Recorder recorder(directory.path(), round, Tree());
  recorder.MakeDirectory("old");
  recorder.MakeDirectory("new");
  recorder.Close(recorder.Create("old/name"), "old/name");
  const size_t before = recorder.history().operations.size();
  recorder.Link("old/name", "new/name");
  recorder.SyncDirectory("old");
  CHECK(recorder.history().durable_operations < before + 1);
  recorder.SyncDirectory("new");
  CHECK(recorder.history().durable_operations == before + 1);
}

TEST_CASE("A sync of either directory promises a rename") {
  for (const char* const synced : {"old", "new"}) {
    const siltfs::testing::TemporaryDirectory directory;
    RoundState round;
    Recorder recorder(directory.path(), round, Tree());
    recorder.MakeDirectory("old");
    recorder.MakeDirectory("new");
    recorder.Close(recorder.Create("old/name"), "old/name");
    recorder.Rename("old/name", "new/name");
    recorder.SyncDirectory(synced);
    CHECK(recorder.history().durable_operations == recorder.history().operations.size());
  }
}

}  // namespace
}  // namespace siltfs::killtest
