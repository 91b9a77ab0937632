// The crash model of metadata: after a crash the store holds exactly the operations up to some
// commit, in the order they were applied. This is the last acknowledged commit or a later one.
//
// Method: every Apply also sets a serial number, which later shows the prefix that is on the disk.
// The model is the list of all Applies in order. In run N, write N fails (N = 1, 2, 3 ...), until a
// run has fewer writes. Each failure is tested twice: the write is lost, or it is on the disk
// although it was reported as failed.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/numbered_operations.h"

namespace siltfs {
namespace {

using testing::MemoryDisk;
using testing::NumberedOperations;
using testing::OpenOn;
using testing::Operation;
using testing::Unhurried;

NumberedOperations Operations(uint64_t seed) { return NumberedOperations(seed, 40, 100); }

MetadataOptions SmallGroups() {
  MetadataOptions options = Unhurried();
  options.group_bytes = 3000;
  return options;
}

// Bounds of the surviving prefix: the last acknowledged commit, and the last applied operation.
struct Progress {
  uint64_t promised = 0;
  uint64_t applied = 0;
};

void CheckAfterCrash(MemoryDisk& disk, const NumberedOperations& operations, Progress progress) {
  const uint64_t survived = operations.CheckPrefix(*OpenOn(disk));
  REQUIRE(survived >= progress.promised);
  REQUIRE(survived <= progress.applied);
  REQUIRE(disk.writes_after_failure() == 0);
}

// Applies operations, and commits now and then, until something fails.
Progress RunUntilFailure(MemoryDisk& disk, const NumberedOperations& operations, Random& random) {
  const auto store = OpenOn(disk, SmallGroups());
  Progress progress;
  std::vector<uint64_t> commits;  // of each operation
  while (progress.applied < 120 && store->WaitForRoom().ok()) {
    Operation operation = operations.Make(progress.applied + 1);
    const auto commit = store->Apply(std::move(operation.mutations), operation.differences);
    if (!commit.ok()) break;
    ++progress.applied;
    commits.push_back(*commit);
    if (random.OneIn(10)) {
      if (!store->CommitAll().ok()) break;
      progress.promised = progress.applied;
    } else if (random.OneIn(10)) {
      const uint64_t some = random.Below(commits.size());
      if (!store->Commit(commits[some]).ok()) break;
      progress.promised = std::max(progress.promised, some + 1);
    }
  }
  return progress;  // destroying the store simulates a crash
}

TEST_CASE(
    "After any failed write a prefix survives that is no older than the last commit returned") {
  const bool reaches_disk = GENERATE(false, true);
  const uint64_t seed = GENERATE(1, 2, 3);
  CAPTURE(reaches_disk, seed);
  bool failed = true;
  for (uint64_t n = 1; failed; ++n) {
    CAPTURE(n);
    MemoryDisk disk;
    disk.FailWrite(n, {StatusCode::kIoError, reaches_disk});
    Random random(seed);
    const Progress progress = RunUntilFailure(disk, Operations(seed), random);
    failed = disk.writes() >= n;
    CheckAfterCrash(disk, Operations(seed), progress);
    REQUIRE(n < 1000);
  }
}

TEST_CASE("A temporarily full disk loses nothing and reorders nothing") {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    CAPTURE(seed);
    MemoryDisk disk;
    Random random(seed);
    Progress progress;
    {
      const auto store = OpenOn(disk, SmallGroups());
      while (progress.applied < 400) {
        if (random.OneIn(15)) disk.FailAllWrites({StatusCode::kNoSpace, random.OneIn(2)});
        Status room = store->WaitForRoom();
        if (random.OneIn(5) || !room.ok()) disk.Mend();
        if (room.Is(StatusCode::kNoSpace)) room = store->WaitForRoom();
        REQUIRE_OK(room);
        Operation operation = Operations(seed).Make(++progress.applied);
        REQUIRE_OK(store->Apply(std::move(operation.mutations), operation.differences));
        if (!random.OneIn(8)) continue;
        const Status committed = store->CommitAll();
        if (committed.ok()) {
          progress.promised = progress.applied;
        } else {
          REQUIRE_CODE(committed, kNoSpace);
        }
      }
    }
    CheckAfterCrash(disk, Operations(seed), progress);
  }
}

TEST_CASE("A crash at any operation leaves a prefix") {
  for (uint64_t length = 0; length <= 150; length += 7) {
    CAPTURE(length);
    MemoryDisk disk;
    {
      const auto store = OpenOn(disk, SmallGroups());
      for (uint64_t number = 1; number <= length; ++number) {
        REQUIRE_OK(store->WaitForRoom());
        Operation operation = Operations(1).Make(number);
        REQUIRE_OK(store->Apply(std::move(operation.mutations), operation.differences));
      }
    }
    CheckAfterCrash(disk, Operations(1), {0, length});
  }
}

TEST_CASE("With many threads, too, a prefix of the Applies survives") {
  const bool reaches_disk = GENERATE(false, true);
  for (const uint64_t n : {1, 2, 5, 9, 14, 20, 30, 50}) {
    CAPTURE(n, reaches_disk);
    MemoryDisk disk;
    disk.FailWrite(n, {StatusCode::kIoError, reaches_disk});
    std::mutex order;  // numbering an operation and applying it are one step
    Progress progress;
    {
      const auto store = OpenOn(disk, SmallGroups());
      auto work = [&](uint64_t seed) {
        Random random(seed);
        for (int i = 0; i < 150 && store->WaitForRoom().ok(); ++i) {
          std::unique_lock<std::mutex> lock(order);
          const uint64_t number = progress.applied + 1;
          Operation operation = Operations(n).Make(number);
          const auto commit = store->Apply(std::move(operation.mutations), operation.differences);
          if (!commit.ok()) return;
          progress.applied = number;
          lock.unlock();
          if (!random.OneIn(6)) continue;
          if (!store->Commit(*commit).ok()) return;
          lock.lock();
          progress.promised = std::max(progress.promised, number);
        }
      };
      std::vector<std::thread> threads;
      for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
      for (std::thread& thread : threads) thread.join();
    }
    CheckAfterCrash(disk, Operations(n), progress);
  }
}

}  // namespace
}  // namespace siltfs
