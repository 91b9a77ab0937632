// A file system whose sealed segments are in a SegmentStore of their own, with faults of that
// store.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "fs/check/check_store.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/repair/repair_store.h"
#include "store/env/sim_env.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/memory_segment_store.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";
constexpr uint32_t kSegmentBytes = 64u << 10;

class RemoteStore {
 public:
  RemoteStore() {
    MakeStoreOptions options;
    options.path = kStore;
    options.index_memory = 4u << 20;
    REQUIRE_OK(MakeStore(env, options));
    auto state = ReadSuperblock(env, kStore);
    REQUIRE_OK(state);
    state->superblock.segment_bytes = kSegmentBytes;
    state->superblock.block_plain_bytes = kMinBlockPlainBytes;
    REQUIRE_OK(WriteSuperblock(env, kStore, state->superblock));
    Open();
  }

  void Open() {
    FileSystemOptions options;
    options.store = kStore;
    options.segments = &memory;
    options.commit_interval = std::chrono::hours(1);
    options.segment_patience = patience;
    options.report = [this](const std::string& finding) { findings.push_back(finding); };
    auto opened = FileSystem::Open(env, options);
    REQUIRE_OK(opened);
    fs = std::move(opened).value();
  }
  void Close() {
    REQUIRE_OK(fs->Close());
    fs.reset();
  }
  // Returns when all segments that the writes have filled are sealed and put, or when that failed.
  void WaitUntilSealed() { REQUIRE_OK(fs->maintenance().CollectGarbage(/*dry_run=*/true)); }
  void Crash() {
    fs.reset();
    env.PowerCut();
  }
  void Write(uint64_t seed, size_t size) {
    const std::string name = fmt::format("file {}", seed);
    files[name] = RandomBytes(seed, size);
    // At once: while the segment store is full, a later piece would be refused.
    const auto created = fs->CreateFile(kRootInode, name, 0644, kCaller);
    REQUIRE_OK(created);
    REQUIRE_OK(fs->Write(created->inode, 0, files[name]));
    fs->ReleaseFile(created->inode);
    fs->Forget(created->inode, 1);
  }
  void RequireFiles() {
    for (const auto& [name, content] : files) {
      INFO(name);
      const auto inode = Resolve(*fs, name);
      REQUIRE_OK(inode);
      const auto read = ReadFile(*fs, *inode);
      REQUIRE_OK(read);
      REQUIRE((*read == content));
    }
  }
  CheckOptions ForCheck() {
    CheckOptions options;
    options.store = kStore;
    options.segments = &memory;
    options.data = true;
    return options;
  }
  std::set<std::string> Check() {
    std::set<std::string> codes;
    CheckOptions options = ForCheck();
    options.on_finding = [&codes](const Finding& finding) { codes.insert(finding.code); };
    REQUIRE_OK(CheckStore(env, options));
    return codes;
  }
  // The segments that are files in the store's directory.
  std::vector<SegmentId> Local() {
    const auto listing = DirectorySegmentStore(env, kStore).List();
    REQUIRE_OK(listing);
    return listing->ids;
  }
  std::vector<SegmentId> Remote() {
    const auto listing = memory.List();
    REQUIRE_OK(listing);
    return listing->ids;
  }

  // Fills the segment store, so that several segments wait for room in it.
  void Fill() {
    Write(1, 60'000);
    REQUIRE_OK(fs->SyncAll());
    WaitUntilSealed();
    memory.SetCapacity(0);
    Write(2, 300'000);
    REQUIRE_OK(fs->SyncAll());
    WaitUntilSealed();
  }

  SimEnv env;
  MemorySegmentStore memory;
  std::chrono::nanoseconds patience{0};  // of the next Open
  std::unique_ptr<FileSystem> fs;
  std::map<std::string, Bytes> files;
  std::vector<std::string> findings;
};

const std::set<std::string> kNone;

}  // namespace

TEST_CASE("sealed segments go to the segment store, open ones stay files") {
  RemoteStore store;
  for (uint64_t i = 0; i < 10; ++i) store.Write(i, 60'000);
  REQUIRE_OK(store.fs->SyncAll());
  store.WaitUntilSealed();
  store.Close();
  CHECK(store.Remote().size() > 5);
  CHECK(store.Local().size() <= 3);
  CHECK(store.Check() == kNone);
  store.Open();
  store.RequireFiles();
  for (uint64_t i = 10; i < 14; ++i) store.Write(i, 60'000);
  REQUIRE_OK(store.fs->SyncAll());
  store.Crash();
  store.Open();  // seals the open segments
  CHECK(store.Local().empty());
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
}

TEST_CASE("a full segment store delays sealing and loses nothing") {
  RemoteStore store;
  for (uint64_t i = 0; i < 4; ++i) store.Write(i, 60'000);
  REQUIRE_OK(store.fs->SyncAll());
  store.WaitUntilSealed();
  store.memory.SetCapacity(0);
  store.Write(50, 100'000);  // fills at least one segment
  REQUIRE_OK(store.fs->SyncAll());
  store.WaitUntilSealed();
  size_t waiting = 0;  // sealed segments that wait for room
  SECTION("until there is room") {
    // What a write has accepted reaches the disk, however many segments wait.
    store.Write(60, 900'000);
    REQUIRE_OK(store.fs->SyncAll());
    store.memory.SetCapacity(1u << 30);
    REQUIRE_OK(store.fs->SyncAll());
    store.RequireFiles();
    store.Close();
  }
  SECTION("until the next mount") {
    store.Close();
    CHECK(store.Check() == kNone);
    store.Open();  // still full
    store.RequireFiles();
    store.Close();
    store.memory.SetCapacity(1u << 30);
    waiting = store.Local().size();
  }
  CHECK(store.Check() == kNone);
  store.Open();
  if (waiting > 0) CHECK(store.Local().size() < waiting);
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
}

TEST_CASE("while the segment store is full, new data is refused, and everything else goes on") {
  RemoteStore store;
  store.Fill();
  const auto inode = Resolve(*store.fs, "file 1");
  REQUIRE_OK(inode);
  const Bytes more = RandomBytes(3, 1000);
  const Status refused = store.fs->Write(*inode, 0, more);
  REQUIRE_CODE(refused, kNoSpace);
  REQUIRE_OK(store.fs->maintenance().GetStats());
  REQUIRE_OK(store.fs->CreateFile(kRootInode, "empty", 0644, kCaller));
  REQUIRE_OK(store.fs->SyncAll());
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
  store.memory.SetCapacity(1u << 30);
  store.Open();
  store.RequireFiles();
  store.Write(4, 100'000);
  store.Close();
  CHECK(store.Check() == kNone);
}

TEST_CASE("a write that waits for room in the segment store holds up nothing else") {
  RemoteStore store;
  store.Close();
  store.patience = std::chrono::hours(1);
  store.Open();
  store.Fill();
  std::atomic<bool> written = false;
  auto created = store.fs->CreateFile(kRootInode, "more", 0644, kCaller);
  REQUIRE_OK(created);
  const Bytes more = RandomBytes(3, 200'000);
  Status outcome;
  std::thread writer([&] {
    outcome = store.fs->Write(created->inode, 0, more);
    written = true;
  });
  // The thread holds no lock that these calls need, at whatever point it is.
  for (int i = 0; i < 20; ++i) {
    REQUIRE_OK(store.fs->maintenance().GetStats());
    REQUIRE_OK(store.fs->SyncAll());
    REQUIRE_OK(store.fs->GetAttributes(created->inode));
  }
  CHECK_FALSE(written);
  SECTION("until there is room") { store.memory.SetCapacity(1u << 30); }
  SECTION("until the end of the mount") { store.fs->maintenance().EndWaitingForSegmentRoom(); }
  writer.join();
  REQUIRE_OK(outcome);
  store.files["more"] = more;
  store.fs->ReleaseFile(created->inode);
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
  store.memory.SetCapacity(1u << 30);
  store.Open();
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
}

TEST_CASE("a failed put makes the store read-only, and the next mount finds what was put") {
  const bool answer_lost = GENERATE(false, true);
  RemoteStore store;
  for (uint64_t i = 0; i < 4; ++i) store.Write(i, 60'000);
  REQUIRE_OK(store.fs->SyncAll());
  store.memory.FailCall({.call = SegmentCall::kPut, .answer_lost = answer_lost});
  Status synced = Status::Ok();
  for (uint64_t i = 0; synced.ok() && i < 20; ++i) {
    const auto created = store.fs->CreateFile(kRootInode, fmt::format("lost {}", i), 0644, kCaller);
    synced = created.status();
    if (!synced.ok()) break;
    synced = store.fs->Write(created->inode, 0, RandomBytes(100 + i, 100'000));
    if (synced.ok()) synced = store.fs->SyncAll();
    store.fs->ReleaseFile(created->inode);
  }
  REQUIRE_CODE(synced, kReadOnly);
  store.RequireFiles();
  GENERATE(false, true) ? store.Crash() : store.fs.reset();
  CHECK(store.Check() == kNone);
  store.Open();
  store.RequireFiles();
  // While the store is open, a segment may be on its way from one place to the other.
  store.Close();
  const std::vector<SegmentId> local = store.Local();
  for (const SegmentId id : store.Remote())
    CHECK_FALSE(std::binary_search(local.begin(), local.end(), id));
  CHECK(store.Check() == kNone);
}

TEST_CASE("fsck finds and repairs damage in the segment store") {
  RemoteStore store;
  for (uint64_t i = 0; i < 6; ++i) store.Write(i, 60'000);
  store.Close();
  const SegmentId id = store.Remote()[1];
  const std::string before = *store.memory.Content(id);
  RepairOptions options;
  options.check = store.ForCheck();
  SECTION("a footer is made again") {
    REQUIRE_OK(store.memory.Corrupt(id, before.size() - 80, 3));
    CHECK(store.Check() == std::set<std::string>{"segment-footer"});
    const auto repaired = RepairStore(store.env, options);
    REQUIRE_OK(repaired);
    CHECK(repaired->left == 0);
    CHECK((*store.memory.Content(id) == before));
  }
  SECTION("lost chunks are replaced by holes") {
    REQUIRE_OK(store.memory.Corrupt(id, 30'000, 3));
    CHECK_FALSE(store.Check().empty());
    options.mode = RepairMode::kAll;
    const auto repaired = RepairStore(store.env, options);
    REQUIRE_OK(repaired);
    CHECK(repaired->left == 0);
    CHECK_FALSE(repaired->lost.empty());
    store.files.clear();
  }
  SECTION("a missing segment is forgotten") {
    REQUIRE_OK(store.memory.Remove(id));
    CHECK(store.Check().contains("segment-missing"));
    options.mode = RepairMode::kAll;
    const auto repaired = RepairStore(store.env, options);
    REQUIRE_OK(repaired);
    CHECK(repaired->left == 0);
    store.files.clear();
  }
  CHECK(store.Check() == kNone);
  IndexRebuildOptions rebuild;
  rebuild.store = kStore;
  rebuild.segments = &store.memory;
  REQUIRE_OK(RebuildIndex(store.env, rebuild));
  store.Open();
  store.RequireFiles();
  store.Close();
  CHECK(store.Check() == kNone);
}

}  // namespace siltfs::testing
