// Whole stores that a reader follows: the files that it shows are always those of one commit.
#include "fs/follow/followed_store.h"

#include <thread>

#include "fs/follow/following_file_system.h"
#include "fs/interface/snapshots.h"
#include "tests/fs/shipping/site.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// A mount on another machine, without threads.
class Reader {
 public:
  Reader(ObjectStore& objects, uint8_t number) : objects_(objects) {
    options.directory = "/follower";
    options.state.readahead_threads = 0;
    options.bucket.fetch_threads = 0;
    options.state.report = [this](const Notice& notice) { reports += notice.sentence + "\n"; };
    options.bucket.cache_files = 2;  // so that reads need the bucket
    options.bucket.bucket_timeout = std::chrono::nanoseconds(0);
    options.reader.id[0] = number;
    options.reader.age = std::chrono::seconds(100);
    options.clock = [this] { return now.load(); };
    options.background = false;
  }
  ~Reader() { Stop(); }

  Status Start() {
    Stop();
    store = std::make_unique<FollowedStore>(*env, objects_, options);
    SILTFS_RETURN_IF_ERROR(store->Start());
    fs = std::make_unique<FollowingFileSystem>(*store);
    return Status::Ok();
  }
  void Stop() {
    fs = nullptr;
    store = nullptr;
  }
  static Files ReadFiles(FileSystem& shown) {
    Files files;
    for (const std::string& name : ListNames(shown, kRootInode)) {
      const auto inode = Resolve(shown, name);
      INFO(name);
      REQUIRE_OK(inode);
      const auto data = ReadFile(shown, *inode);
      REQUIRE_OK(data);
      uint64_t seed = 0;
      for (size_t i = 0; i < 8 && i < data->size(); ++i) seed |= uint64_t{(*data)[i]} << 8 * i;
      REQUIRE(*data == Site::ContentOf(seed, data->size()));
      files[name] = {seed, data->size()};
    }
    return files;
  }
  Files ReadAll() { return ReadFiles(*fs); }

  std::unique_ptr<SimEnv> env = std::make_unique<SimEnv>(1000);
  std::atomic<int64_t> now{0};
  FollowOptions options;
  std::unique_ptr<FollowedStore> store;
  std::unique_ptr<FollowingFileSystem> fs;
  std::string reports;  // of damage

 private:
  ObjectStore& objects_;
};

Status Maintain(FileSystem& fs, uint64_t choice) {
  if (choice == 0) return fs.maintenance().Recompress().status();
  if (choice == 1) return fs.maintenance().CollectGarbage(false).status();
  return Status::Ok();
}

TEST_CASE("followed store: it shows a commit of the writer, and commits never go back") {
  uint64_t restarts = 0;
  for (uint64_t seed = 1; seed <= (kIsSanitized ? 4 : 25); ++seed) {
    INFO("seed " << seed);
    MemoryObjectStore objects;
    Random random(seed);
    uint8_t number = 1;
    auto site = std::make_unique<Site>(objects, number);
    site->shipping.checkpoint_bytes = 20000;
    site->shipping.queue_bytes = random.Below(3) == 0 ? 6000 : 1u << 20;
    site->Make();
    REQUIRE_OK(site->Open());
    REQUIRE_OK(site->Ship());
    FileHistory history(seed);
    Reader reader(objects, 1);
    REQUIRE_OK(reader.Start());
    size_t shown = 0;
    uint64_t commit = 0;
    const auto look = [&](bool must_be_newest) {
      const Files files = reader.ReadAll();
      size_t now = shown;
      while (now < history.states.size() && history.states[now] != files) ++now;
      REQUIRE(now < history.states.size());
      shown = now;
      REQUIRE(reader.store->status().commit >= commit);
      commit = reader.store->status().commit;
      if (must_be_newest) REQUIRE(files == history.states.back());
    };
    for (int step = 0; step < 60; ++step) {
      const uint64_t choice = random.Below(24);
      if (choice < 8) {
        REQUIRE_OK(history.Step(*site->fs));
      } else if (choice < 12) {
        REQUIRE_OK(site->Ship());
      } else if (choice < 16) {
        REQUIRE_OK(Maintain(*site->fs, random.Below(2)));
      } else if (choice == 16) {
        site->Crash();
        site->env->PowerCut({CrashPolicy::Unsynced::kSubset, random.Below(1000)});
        REQUIRE_OK(site->Open());
      } else if (choice == 17) {
        site->Crash();
        auto other = std::make_unique<Site>(objects, ++number);
        other->shipping = site->shipping;
        other->shipping.writer.id[0] = number;
        REQUIRE_OK(other->Restore());
        REQUIRE_OK(other->Open());
        const Files files = other->ReadAll();
        while (history.states.back() != files) history.states.pop_back();
        site = std::move(other);
      } else if (choice == 18) {
        restarts += reader.store->status().restarts;
        reader.Stop();
        REQUIRE_OK(reader.Start());
        look(false);
      } else {
        REQUIRE_OK(reader.store->Poll());
        look(site->session->lag().commits == 0);
      }
      // The bucket may be ahead of the reader, which goes on with what it shows.
      if (random.Below(3) == 0) look(false);
    }
    REQUIRE_OK(site->Ship());
    REQUIRE_OK(reader.store->Poll());
    look(true);
    REQUIRE(reader.reports.empty());
    restarts += reader.store->status().restarts;
  }
  CHECK(restarts > 0);
}

TEST_CASE("followed store: the writer deletes nothing that a reader shows, and deletes it later") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(3);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  REQUIRE_OK(reader.Start());
  const Files before = history.states.back();
  // Everything is rewritten and collected, while the reader does not look.
  const auto segments = [&] {
    size_t count = 0;
    for (const std::string& key : objects.Keys()) count += key.starts_with("segments/");
    return count;
  };
  const auto tidy = [&] {
    REQUIRE_OK(site.fs->maintenance().CollectGarbage(false));
    REQUIRE_OK(site.Ship());
    REQUIRE_OK(site.session->bucket()->RunBackground());
  };
  for (int i = 0; i < 30; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.fs->maintenance().Recompress());
  tidy();
  const uint64_t waiting = site.session->bucket()->GetStatus().deletions_waiting;
  CHECK(waiting > 0);
  CHECK(site.session->lag().readers == 1);
  CHECK(reader.ReadAll() == before);
  const size_t kept = segments();
  REQUIRE_OK(reader.store->Poll());
  CHECK(reader.ReadAll() == history.states.back());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(site.session->bucket()->GetStatus().deletions_waiting < waiting);
  CHECK(segments() < kept);
  CHECK(reader.ReadAll() == history.states.back());

  // A reader that is killed does not hold the space for ever: the machine reads another clock.
  for (int i = 0; i < 10; ++i) REQUIRE_OK(history.Step(*site.fs));
  tidy();
  reader.Stop();
  CHECK(std::ranges::none_of(objects.Keys(),
                             [](const std::string& key) { return key.starts_with("readers/"); }));
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(site.session->bucket()->GetStatus().deletions_waiting == 0);
}

TEST_CASE("followed store: a reader that was given up shows the newest state, or an error") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(4);
  for (int i = 0; i < 20; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  REQUIRE_OK(reader.Start());
  // The writer gives the reader up.
  for (const std::string& key : objects.Keys()) {
    if (key.starts_with("readers/")) REQUIRE_OK(objects.Remove(key));
  }
  for (int i = 0; i < 30; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.fs->maintenance().CollectGarbage(false));
  REQUIRE_OK(site.Ship());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(site.session->bucket()->GetStatus().deletions_waiting == 0);
  const bool reads_first = GENERATE(false, true);
  if (reads_first) {
    // The file is read from the newest state, or fails: it may be gone there.
    for (const auto& [name, content] : history.states.back()) {
      const auto inode = Resolve(*reader.fs, name);
      if (!inode.ok()) continue;
      const auto data = ReadFile(*reader.fs, *inode);
      if (!data.ok()) CHECK(!data.status().Is(StatusCode::kCorruption));
      data.status().IgnoreError("checked");
    }
  } else {
    reader.now += 200'000'000'000;
    CHECK(reader.store->status().lapsed);
  }
  REQUIRE_OK(reader.store->Poll());
  CHECK(!reader.store->status().lapsed);
  CHECK(reader.ReadAll() == history.states.back());
}

TEST_CASE("followed store: while the bucket fails, the old state stays, and later it catches up") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(5);
  for (int i = 0; i < 10; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  REQUIRE_OK(reader.Start());
  const Files before = reader.ReadAll();
  CHECK(before == history.states.back());
  for (int i = 0; i < 12; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  // Each call of the poll fails once.
  bool failed = true;
  for (uint64_t nth = 1; failed; ++nth) {
    failed = false;
    for (const ObjectCall call : {ObjectCall::kGet, ObjectCall::kList, ObjectCall::kStat}) {
      reader.Stop();
      reader.env = std::make_unique<SimEnv>(nth);
      REQUIRE_OK(reader.Start());
      REQUIRE(reader.ReadAll() == history.states.back());
      REQUIRE_OK(history.Step(*site.fs));
      REQUIRE_OK(site.Ship());
      ObjectFault fault;
      fault.call = call;
      fault.nth = nth;
      objects.FailCall(fault);
      const Status polled = reader.store->Poll();
      objects.ClearFaults();
      failed |= !polled.ok();
      if (!polled.ok()) {
        CHECK(!reader.store->status().last_error.empty());
        const Files now = reader.ReadAll();
        CHECK((now == history.states.back() || now == history.states[history.last() - 1]));
        REQUIRE_OK(reader.store->Poll());
      }
      CHECK(reader.ReadAll() == history.states.back());
      CHECK(reader.store->status().last_error.empty());
    }
  }
}

// Notes what the kernel was told to forget.
class NotedCache final : public KernelCache {
 public:
  void ForgetName(InodeNumber parent, const std::string& name) override {
    names.emplace_back(parent, name);
  }
  void ForgetInode(InodeNumber inode, bool /*listing*/) override { inodes.insert(inode); }

  std::vector<std::pair<InodeNumber, std::string>> names;
  std::set<InodeNumber> inodes;
};

TEST_CASE("followed store: the kernel is told what it knows of the changes, twice") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  const auto file = site.fs->CreateFile(kRootInode, "file", 0644, kCaller);
  REQUIRE_OK(file);
  const auto other = site.fs->CreateFile(kRootInode, "other", 0644, kCaller);
  REQUIRE_OK(other);
  REQUIRE_OK(site.fs->SyncAll());
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  REQUIRE_OK(reader.Start());
  NotedCache cache;
  reader.store->SetKernelCache(&cache);
  REQUIRE_OK(reader.fs->Lookup(kRootInode, "file"));
  REQUIRE_OK(reader.store->Poll());
  CHECK(cache.inodes.empty());
  REQUIRE_OK(site.fs->Write(file->inode, 0, Bytes(100, 'x')));
  REQUIRE_OK(site.fs->Write(other->inode, 0, Bytes(100, 'x')));
  const auto made = site.fs->CreateFile(kRootInode, "new", 0644, kCaller);
  REQUIRE_OK(made);
  REQUIRE_OK(site.fs->snapshots().Create("kept"));
  REQUIRE_OK(site.fs->SyncAll());
  REQUIRE_OK(site.Ship());
  for (int round = 0; round < 2; ++round) {
    cache.names.clear();
    cache.inodes.clear();
    REQUIRE_OK(reader.store->Poll());
    CHECK(cache.inodes.contains(file->inode));
    CHECK(cache.inodes.contains(kRootInode));
    CHECK(cache.inodes.contains(kSnapshotDirectory));
    CHECK(!cache.inodes.contains(other->inode));  // the kernel has never seen it
    const auto has = [&](InodeNumber parent, const std::string& name) {
      return std::ranges::find(cache.names, std::pair(parent, name)) != cache.names.end();
    };
    CHECK(has(kRootInode, "new"));
    CHECK(has(kSnapshotDirectory, "kept"));
    CHECK(!has(kRootInode, "file"));
  }
  cache.inodes.clear();
  REQUIRE_OK(reader.store->Poll());
  CHECK(cache.inodes.empty());
  reader.store->SetKernelCache(nullptr);
  CHECK(reader.fs->snapshots().List().size() == 1);
  CHECK(reader.fs->CreateFile(kRootInode, "x", 0644, kCaller).status().Is(StatusCode::kReadOnly));
}

TEST_CASE("followed store: a call that has begun goes on with its state") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(6);
  for (int i = 0; i < 15; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  REQUIRE_OK(reader.Start());
  auto held = reader.store->state();
  const Files before = history.states.back();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) REQUIRE_OK(history.Step(*site.fs));
    REQUIRE_OK(site.fs->maintenance().Recompress());
    REQUIRE_OK(site.fs->maintenance().CollectGarbage(false));
    REQUIRE_OK(site.Ship());
    REQUIRE_OK(reader.store->Poll());
    REQUIRE_OK(site.session->bucket()->RunBackground());
    CHECK(reader.ReadAll() == history.states.back());
    CHECK(Reader::ReadFiles(*held->file_system) == before);
    CHECK(site.session->bucket()->GetStatus().deletions_waiting > 0);
  }
  CHECK(reader.reports.empty());
  held = nullptr;
  REQUIRE_OK(reader.store->Poll());
  REQUIRE_OK(site.session->bucket()->RunBackground());
  CHECK(site.session->bucket()->GetStatus().deletions_waiting == 0);
  CHECK(reader.ReadAll() == history.states.back());
}

TEST_CASE("followed store: threads read while it follows") {
  MemoryObjectStore objects;
  Site site(objects, 1);
  site.Make();
  REQUIRE_OK(site.Open());
  FileHistory history(7);
  for (int i = 0; i < 10; ++i) REQUIRE_OK(history.Step(*site.fs));
  REQUIRE_OK(site.Ship());
  Reader reader(objects, 1);
  reader.options.background = true;
  reader.options.interval = std::chrono::milliseconds(1);
  REQUIRE_OK(reader.Start());
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        const auto state = reader.store->state();
        for (const std::string& name : ListNames(*state->file_system, kRootInode)) {
          const auto found = state->file_system->Lookup(kRootInode, name);
          if (!found.ok()) ++wrong;
          found.status().IgnoreError("counted");
          if (!found.ok()) continue;
          Bytes bytes(found->size);
          const auto read = state->file_system->Read(found->inode, 0, bytes);
          if (!read.ok() || *read != bytes.size()) ++wrong;
          read.status().IgnoreError("counted");
        }
      }
    });
  }
  for (int i = 0; i < (kIsSanitized ? 10 : 40); ++i) {
    REQUIRE_OK(history.Step(*site.fs));
    if (i % 5 == 0) REQUIRE_OK(site.fs->maintenance().CollectGarbage(false));
    REQUIRE_OK(site.Ship());
    REQUIRE_OK(site.session->bucket()->RunBackground());
  }
  REQUIRE_OK(reader.store->Poll());
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(reader.ReadAll() == history.states.back());
}

}  // namespace
}  // namespace siltfs::testing
