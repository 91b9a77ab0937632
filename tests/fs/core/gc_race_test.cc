// What others do at a chosen moment of a garbage collection.
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "store/env/sim_env.h"
#include "tests/fs/core/settle_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// A simulated device that calls back before a segment is copied from, which is when the collector
// looks at the disk's free space.
class WatchedEnv : public FaultEnv {
 public:
  WatchedEnv() : WatchedEnv(std::make_unique<SimEnv>()) {}

  SimEnv& device() { return device_; }
  // Once, in the thread of the call.
  void BeforeCopying(std::function<void()> hook) {
    hook_ = std::move(hook);
    collector_ = std::this_thread::get_id();
  }

  Result<DiskSpace> GetDiskSpace(const std::string& path) override {
    if (std::this_thread::get_id() == collector_) {
      collector_ = std::thread::id();
      hook_();
    }
    return FaultEnv::GetDiskSpace(path);
  }

 private:
  explicit WatchedEnv(std::unique_ptr<SimEnv> device)
      : FaultEnv(std::move(device)), device_(static_cast<SimEnv&>(base())) {}

  SimEnv& device_;
  std::function<void()> hook_;
  std::atomic<std::thread::id> collector_;
};

constexpr uint32_t kSegmentBytes = 4u << 20;
constexpr size_t kIndexEntryBytes = 32;

}  // namespace

TEST_CASE("a chunk that is not copied as it was written again lies durably where it was written") {
  WatchedEnv env;
  SettleStore store(env, "/store", kSegmentBytes);
  {
    auto fs = store.Open(env);
    REQUIRE_OK(fs);
    store.files["kept"] = RandomBytes(1, 60'000);
    WriteLargeFile(**fs, "kept", store.files["kept"]);
    WriteLargeFile(**fs, "garbage", RandomBytes(2, 200'000));
    REQUIRE_OK((*fs)->SyncAll());
  }
  auto fs = store.Open(env);  // which seals the segment that was left open
  REQUIRE_OK(fs);
  REQUIRE_OK((*fs)->Unlink(kRootInode, "garbage"));
  const auto bytes_put = [&fs] {
    const auto stats = (*fs)->GetStats();
    REQUIRE_OK(stats);
    return stats->index.entry_bytes_put;
  };
  bool written = false;
  env.BeforeCopying([&] {
    written = true;
    const uint64_t before = bytes_put();
    // The chunks are condemned, so they are stored again; what follows fills their blocks.
    const Bytes more = RandomBytes(3, 600'000);
    WriteLargeFile(**fs, "again", store.files["kept"]);
    WriteLargeFile(**fs, "more", more);
    // Blocks are appended, and the index told, in the order in which they were filled.
    constexpr uint64_t kMostChunks = 60'000 / 2'048 + 1;
    while (bytes_put() < before + kMostChunks * kIndexEntryBytes) std::this_thread::yield();
  });
  const auto report = (*fs)->CollectGarbage(false);
  REQUIRE_OK(report);
  REQUIRE(written);
  REQUIRE(report->segments_removed >= 1);
  REQUIRE(report->bytes_copied == 0);
  const auto left = env.device().Fork();
  left->PowerCut();
  {
    auto after = store.Open(*left);
    REQUIRE_OK(after);
    store.RequireFiles(**after);
    REQUIRE_OK((*after)->Close());
  }
  store.RequireSound(*left);
}

}  // namespace siltfs::testing
