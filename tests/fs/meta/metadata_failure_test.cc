// Failed commits: a full disk is retried, any other failure ends all writing.
#include <atomic>
#include <thread>

#include "tests/fs/meta/metadata_test_support.h"

namespace siltfs {
namespace {

using testing::Apply;
using testing::FakeParticipant;
using testing::MemoryDisk;
using testing::OpenOn;
using testing::Put;
using testing::Read;
using testing::Unhurried;
using testing::UsualOptions;

MetadataOptions SmallGroups() {
  MetadataOptions options = Unhurried();
  options.group_bytes = 2000;
  return options;
}

std::string Filler() { return std::string(3000, 'x'); }

TEST_CASE("After a failed write the store is permanently read-only, and reports the cause") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("k", "committed")});
  REQUIRE_OK(store->CommitAll());
  Apply(*store, {Put("k", "applied")}, {1});
  disk.FailWrite(2, {StatusCode::kIoError, GENERATE(false, true)});

  const Status first = store->CommitAll();
  REQUIRE_CODE(first, kIoError);
  REQUIRE(store->failure().ToString() == first.ToString());
  for (const Status& later :
       {store->CommitAll(), store->Commit(2), store->WaitForRoom(), store->WriteThrough({}),
        Status(store->Apply({Put("k", "refused")}).status())}) {
    REQUIRE_CODE(later, kReadOnly);
    REQUIRE(later.ToString().find("write 2") != std::string::npos);
  }
  REQUIRE_CODE(store->Close(), kReadOnly);
  REQUIRE(disk.writes() == 2);
  REQUIRE_FALSE(disk.closed_cleanly());
}

TEST_CASE("A store that turned read-only still answers reads") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("a", "committed"), Put("b", "committed")});
  REQUIRE_OK(store->CommitAll());
  Apply(*store, {Put("b", "applied")}, {1});
  disk.FailWrite(2, {StatusCode::kIoError, false});
  REQUIRE_CODE(store->CommitAll(), kIoError);
  REQUIRE(Read(*store, "a") == "committed");
  REQUIRE(Read(*store, "b") == "applied");
  REQUIRE(testing::ScanAll(store->Pin()) == testing::Entries{{"a", "committed"}, {"b", "applied"}});
  REQUIRE(store->counters()[0] == 1);
  REQUIRE_OK(store->Commit(1));  // commit 1 is durable
  REQUIRE(store->last_commit() == 1);
}

TEST_CASE("Data that cannot be made durable ends all writing before metadata refers to it") {
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  participant.FailWith(StatusCode::kIoError);
  Apply(*store, {Put("k", "v")});
  REQUIRE_CODE(store->CommitAll(), kIoError);
  participant.FailWith(StatusCode::kOk);
  REQUIRE_CODE(store->CommitAll(), kReadOnly);
  REQUIRE(disk.writes() == 0);
  REQUIRE(participant.prepared().size() == 1);
  REQUIRE(participant.done().empty());
}

TEST_CASE("A failed commit is not retried after the interval") {
  MemoryDisk disk;
  FakeParticipant participant;
  MetadataOptions options = UsualOptions();
  options.commit_interval = std::chrono::milliseconds(0);  // expires at once
  auto store = OpenOn(disk, options, &participant);
  participant.FailWith(StatusCode::kIoError);
  participant.Hold();
  Apply(*store, {Put("k", "v")});
  participant.WaitForPrepared(1);
  participant.Release();
  REQUIRE_FALSE(store->Commit(1).ok());
  store.reset();
  REQUIRE(participant.prepared().size() == 1);
}

TEST_CASE("A failed write-through ends all writing, also of a running commit") {
  MemoryDisk disk;
  FakeParticipant participant;
  auto store = OpenOn(disk, Unhurried(), &participant);
  Apply(*store, {Put("k", "v")});
  participant.Hold();
  Status committed;
  std::thread committer([&] { committed = store->CommitAll(); });
  participant.WaitForPrepared(1);
  disk.FailWrite(1, {StatusCode::kIoError, false});
  REQUIRE_CODE(store->WriteThrough({Put("range", "1")}), kIoError);
  participant.Release();
  committer.join();
  REQUIRE_FALSE(committed.ok());
  REQUIRE_CODE(store->failure(), kIoError);
  REQUIRE_CODE(store->Apply({Put("k", "w")}), kReadOnly);
  store.reset();  // waiters failed at once; only this call waits for the running commit
  REQUIRE(disk.writes() == 1);
  REQUIRE(disk.writes_after_failure() == 0);
}

TEST_CASE("All waiters of a commit get its failure") {
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, SmallGroups(), &participant);
  participant.Hold();
  Apply(*store, {Put("a", Filler())});
  REQUIRE_OK(store->WaitForRoom());
  Apply(*store, {Put("b", Filler())});
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (uint64_t number : {1, 2}) {
    threads.emplace_back([&, number] {
      if (!store->Commit(number).ok()) ++refused;
    });
  }
  threads.emplace_back([&] {
    if (!store->WaitForRoom().ok()) ++refused;
  });
  participant.WaitForPrepared(1);
  participant.FailWith(StatusCode::kIoError);
  participant.Release();
  for (std::thread& thread : threads) thread.join();
  REQUIRE(refused == 3);
  REQUIRE(disk.writes() == 0);
}

TEST_CASE("A full disk fails the commit that met it, and the next one writes everything") {
  const bool in_participant = GENERATE(false, true);
  const bool reaches_disk = GENERATE(false, true);
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, Unhurried(), &participant);
  Apply(*store, {Put("a", "1")}, {1});
  if (in_participant) {
    participant.FailWith(StatusCode::kNoSpace);
  } else {
    disk.FailAllWrites({StatusCode::kNoSpace, reaches_disk});
  }
  REQUIRE_CODE(store->CommitAll(), kNoSpace);
  REQUIRE_OK(store->failure());
  REQUIRE(Read(*store, "a") == "1");
  REQUIRE(store->last_commit() == 0);
  // While the failed commit waits to be repeated, operations go on in the next group.
  REQUIRE(Apply(*store, {Put("a", "2"), Put("b", "2")}, {10}) == 2);
  REQUIRE_CODE(store->Commit(2), kNoSpace);
  REQUIRE_CODE(store->Commit(1), kNoSpace);

  participant.FailWith(StatusCode::kOk);
  disk.Mend();
  REQUIRE_OK(store->Commit(1));
  REQUIRE(disk.contents().at("a") == "1");
  REQUIRE(disk.contents().count("b") == 0);
  REQUIRE_OK(store->Commit(2));
  REQUIRE(disk.contents().at("a") == "2");
  REQUIRE(store->last_commit() == 2);
  REQUIRE(participant.prepared() == std::vector<uint64_t>{1, 1, 1, 1, 2});
  REQUIRE(participant.done() == std::vector<uint64_t>{1, 2});
  REQUIRE_OK(store->Close());
  REQUIRE(OpenOn(disk)->counters()[0] == 11);
}

TEST_CASE("A waiter does not get the kNoSpace of an earlier attempt") {
  const bool for_room = GENERATE(false, true);
  MemoryDisk disk;
  FakeParticipant participant;
  const auto store = OpenOn(disk, SmallGroups(), &participant);
  disk.FailWrite(1, {StatusCode::kNoSpace, false});
  participant.Hold();
  Apply(*store, {Put("a", Filler())});
  participant.WaitForPrepared(1);  // by the attempt that will fail
  Apply(*store, {Put("b", Filler())});
  std::atomic<bool> started{false};
  Status answer;
  std::thread waiter([&] {
    started = true;
    answer = for_room ? store->WaitForRoom() : store->CommitAll();
  });
  // The thread probably waits now. If it does not, the test covers less, but does not fail.
  for (int i = 0; i < 1000 || !started; ++i) std::this_thread::yield();
  participant.Release();
  waiter.join();
  REQUIRE_OK(answer);
  REQUIRE(participant.prepared().at(1) == 1);
  REQUIRE(store->last_commit() >= 1);
}

TEST_CASE("With both groups full and a full disk, operations get kNoSpace until there is space") {
  MemoryDisk disk;
  const auto store = OpenOn(disk, SmallGroups());
  disk.FailAllWrites({StatusCode::kNoSpace, false});
  Apply(*store, {Put("a", Filler())});
  REQUIRE_OK(store->WaitForRoom());
  Apply(*store, {Put("b", Filler())});
  REQUIRE_CODE(store->WaitForRoom(), kNoSpace);
  REQUIRE_CODE(store->WaitForRoom(), kNoSpace);
  disk.Mend();
  REQUIRE_OK(store->WaitForRoom());  // repeats the commit
  REQUIRE(store->last_commit() >= 1);
  REQUIRE_OK(store->CommitAll());
  REQUIRE(disk.contents().count("b") == 1);
}

TEST_CASE("A group that met a full disk is retried after the interval") {
  MemoryDisk disk;
  MetadataOptions options = UsualOptions();
  options.commit_interval = std::chrono::milliseconds(1);
  const auto store = OpenOn(disk, options);
  disk.FailWrite(1, {StatusCode::kNoSpace, false});
  disk.FailWrite(2, {StatusCode::kNoSpace, false});
  Apply(*store, {Put("k", "v")});
  disk.WaitForWrites(3);
  REQUIRE(disk.contents().at("k") == "v");
}

TEST_CASE("Close on a full disk closes nothing, and can be called again") {
  MemoryDisk disk;
  const auto store = OpenOn(disk);
  Apply(*store, {Put("k", "v")});
  disk.FailAllWrites({StatusCode::kNoSpace, false});
  REQUIRE_CODE(store->Close(), kNoSpace);
  REQUIRE_FALSE(disk.closed_cleanly());
  disk.Mend();
  Apply(*store, {Put("l", "v")});
  REQUIRE_OK(store->Close());
  REQUIRE(disk.closed_cleanly());
  REQUIRE(disk.contents().count("k") == 1);
  REQUIRE(disk.contents().count("l") == 1);
}

}  // namespace
}  // namespace siltfs
