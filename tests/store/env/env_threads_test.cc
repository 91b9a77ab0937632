// Many threads use one Env at once. Most errors show only in a build with ThreadSanitizer.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "store/env/files.h"
#include "store/env/posix_env.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

// Uses private files and one file shared by all threads, in which each thread writes its own pages.
// Returns whether every call was OK.
bool UseFrom(Env& env, const std::string& top, int thread, File& shared) {
  const std::string path = top + "/" + std::to_string(thread);
  for (uint64_t round = 0; round < 50; ++round) {
    auto file = env.OpenFile(path, {.mode = OpenMode::kCreate});
    if (!file.ok()) return false;
    const Bytes data(5'000, static_cast<uint8_t>(round + 1));
    if (!(*file)->Write(0, data).ok() || !(*file)->Sync().ok()) return false;
    if (!shared.Write(static_cast<uint64_t>(thread) * 4'096, ByteView(data).first(4'096)).ok())
      return false;
    if (!shared.Sync().ok()) return false;
    if (!env.ListDirectory(top).ok() || !env.SyncDirectory(top).ok()) return false;
    if (!env.Rename(path, path + ".done").ok() || !env.RemoveFile(path + ".done").ok())
      return false;
  }
  return true;
}

void UseFromManyThreads(Env& env, const std::string& top) {
  auto shared = env.OpenFile(top + "/shared", {.mode = OpenMode::kCreate});
  REQUIRE_OK(shared);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (UseFrom(env, top, t, **shared)) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(good == 4);
  REQUIRE(ReadWholeFile(env, top + "/shared", 1 << 20).value() == std::string(4 * 4'096, 50));
}

TEST_CASE("threads share the Env of the machine") {
  testing::TemporaryDirectory directory;
  UseFromManyThreads(*NewPosixEnv(), directory.path());
}

TEST_CASE("threads share the simulated device") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/top"));
  UseFromManyThreads(env, "/top");
}

TEST_CASE("one thread at a time holds a lock") {
  SimEnv env;
  std::atomic<int> holders = 0;
  std::atomic<bool> overlapped = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int taken = 0; taken < 100;) {
        auto lock = env.LockFile("/lock");
        if (!lock.ok()) continue;
        if (++holders != 1) overlapped = true;
        --holders;
        ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE_FALSE(overlapped);
}

TEST_CASE("the power can be cut under running threads") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/top"));
  REQUIRE_OK(env.SyncDirectory("/"));
  auto shared = env.OpenFile("/shared", {.mode = OpenMode::kCreate});
  REQUIRE_OK(shared);
  env.CutAtCall(300);  // each thread would make 400 such calls
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      if (!UseFrom(env, "/top", t, **shared)) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(failed == 4);
  env.Reboot();
  REQUIRE_OK(env.ListDirectory("/top"));
}

}  // namespace
}  // namespace siltfs
