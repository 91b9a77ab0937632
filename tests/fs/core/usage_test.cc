// The space of paths in a real store: what a measurement promises is what a removal and a
// collection free.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/space_usage.h"
#include "store/base/random.h"
#include "tests/fs/core/garbage_store.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

// Files and directories that a seed decides, in a store with small segments.
class UsedStore {
 public:
  explicit UsedStore(uint64_t seed) : random_(seed), store_(32u << 10) { store_.Begin(); }

  FileSystem& fs() { return *store_.fs; }
  GarbageStore& store() { return store_; }
  Random& random() { return random_; }

  void Step() {
    const uint64_t kind = random_.Below(16);
    if (kind < 2) {
      MakeDirectory();
    } else if (kind < 7 || files_.empty()) {
      Write(NewPlace(), RandomBytes(random_.Next(), 1 + random_.Below(90'000)));
    } else if (kind < 8) {
      Write(NewPlace(), RandomBytes(random_.Next(), 700'000));
    } else if (kind < 11) {
      Write(NewPlace(), files_[random_.Below(files_.size())]);
    } else if (kind < 13) {
      Write(NewPlace(), Mixed());
    } else if (kind < 14) {
      Link();
    } else if (kind < 15) {
      Clone();
    } else {
      REQUIRE_OK(fs().snapshots().Create(fmt::format("s{}", next_++)));
    }
  }

  // Some names of the tree.
  std::vector<UsagePath> AnyPaths(size_t count) {
    std::vector<UsagePath> paths;
    for (size_t i = 0; i < count; ++i) {
      const UsagePath path = AnyName();
      if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    }
    return paths;
  }
  void Remove(const UsagePath& path) {
    const auto found = fs().Lookup(path.directory, path.name);
    // It may have gone with another path, or with its directory.
    if (found.status().Is(StatusCode::kNotFound) || found.status().Is(StatusCode::kStale)) return;
    REQUIRE_OK(found);
    fs().Forget(found->inode, 1);
    if ((found->mode & 0170000) != 0040000) {
      REQUIRE_OK(fs().Unlink(path.directory, path.name));
      return;
    }
    for (const std::string& name : ListNames(fs(), found->inode)) Remove({found->inode, name});
    REQUIRE_OK(fs().RemoveDirectory(path.directory, path.name));
    std::erase(directories_, found->inode);
  }
  GarbageReport Collect() { return store_.SealAndCollect(); }

 private:
  UsagePath NewPlace() {
    return {directories_[random_.Below(directories_.size())], fmt::format("n{}", next_++)};
  }
  UsagePath AnyName() {
    InodeNumber directory = directories_[random_.Below(directories_.size())];
    auto names = ListNames(fs(), directory);
    if (names.empty()) {
      directory = kRootInode;
      Write({directory, fmt::format("n{}", next_++)}, RandomBytes(random_.Next(), 1000));
      names = ListNames(fs(), directory);
    }
    return {directory, names[random_.Below(names.size())]};
  }
  void MakeDirectory() {
    const UsagePath place = NewPlace();
    directories_.push_back(MakeDir(fs(), place.directory, place.name));
  }
  void Write(const UsagePath& place, const Bytes& data) {
    const InodeNumber inode = MakeFile(fs(), place.directory, place.name);
    REQUIRE_OK(fs().OpenFile(inode, false));
    REQUIRE_OK(fs().Write(inode, 0, data));
    fs().ReleaseFile(inode);
    files_.push_back(data);
  }
  // The beginning of one file and the end of another one.
  Bytes Mixed() {
    const Bytes& first = files_[random_.Below(files_.size())];
    const Bytes& second = files_[random_.Below(files_.size())];
    Bytes mixed(first.begin(), first.begin() + static_cast<ptrdiff_t>(first.size() / 2));
    mixed.insert(mixed.end(), second.begin() + static_cast<ptrdiff_t>(second.size() / 3),
                 second.end());
    return mixed;
  }
  void Link() {
    const UsagePath from = AnyName();
    const auto found = fs().Lookup(from.directory, from.name);
    REQUIRE_OK(found);
    fs().Forget(found->inode, 1);
    if ((found->mode & 0170000) == 0040000) return;
    const UsagePath to = NewPlace();
    const auto linked = fs().Link(found->inode, to.directory, to.name);
    REQUIRE_OK(linked);
    fs().Forget(linked->inode, 1);
  }
  void Clone() {
    const UsagePath from = AnyName();
    const auto found = fs().Lookup(from.directory, from.name);
    REQUIRE_OK(found);
    fs().Forget(found->inode, 1);
    REQUIRE_OK(fs().entries().Clone(
        {.source = found->inode, .parent = kRootInode, .name = fmt::format("n{}", next_++)}));
  }

  Random random_;
  GarbageStore store_;
  std::vector<InodeNumber> directories_{kRootInode};
  std::vector<Bytes> files_;
  uint64_t next_ = 0;
};

UsageReport Measure(FileSystem& fs, const std::vector<UsagePath>& paths) {
  UsageRequest request;
  request.scope.paths = paths;
  auto report = fs.usage().Measure(request);
  REQUIRE_OK(report);
  return *report;
}

}  // namespace

TEST_CASE("a removal of paths and a collection free exactly the exclusive bytes") {
  int rounds = 0;
  const int least_rounds = SanitizedStep() == 1 ? 5 : 1;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    if (SanitizedStep() > 1 && rounds >= least_rounds) break;
    UsedStore store(seed);
    for (int step = 0; step < 70; ++step) store.Step();
    for (int round = 0; round < 4; ++round) {
      INFO("seed " << seed << ", round " << round);
      const auto paths = store.AnyPaths(1 + store.random().Below(3));
      const GarbageReport left_before = store.Collect();
      const SpaceUsage usage = Measure(store.fs(), paths).total;
      const FileSystemStats before = store.store().Stats();
      for (const UsagePath& path : paths) store.Remove(path);
      const GarbageReport left_after = store.Collect();
      const FileSystemStats after = store.store().Stats();
      REQUIRE(before.files - after.files <= usage.files);  // some have other names
      REQUIRE((left_before.live_chunks == left_after.live_chunks) ==
              (usage.exclusive_bytes + usage.recipe_bytes == 0));
      // The statistics are estimates if dead chunks are left in a segment.
      if (left_before.dead_chunks > 0 || left_after.dead_chunks > 0) continue;
      REQUIRE(before.unique_bytes - after.unique_bytes == usage.exclusive_bytes);
      if (usage.exclusive_bytes > 0) ++rounds;
    }
  }
  CHECK(rounds >= least_rounds);
}

TEST_CASE("bytes that a program has just written are counted") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  const Bytes data = RandomBytes(1, 50'000);
  WriteFile(fs, "file", data);
  const SpaceUsage folded = Measure(fs, {{kRootInode, "file"}}).total;
  CHECK(folded ==
        SpaceUsage{.files = 1, .logical_bytes = data.size(), .exclusive_bytes = data.size()});
  // While the file is open, what is not cut yet is in no chunk.
  const InodeNumber inode = MakeFile(fs, kRootInode, "open");
  REQUIRE_OK(fs.OpenFile(inode, false));
  REQUIRE_OK(fs.Write(inode, 0, RandomBytes(2, 3000)));
  const SpaceUsage open = Measure(fs, {{kRootInode, "open"}}).total;
  CHECK(open == SpaceUsage{.files = 1, .logical_bytes = 3000, .pending_bytes = 3000});
  fs.ReleaseFile(inode);
  store.End();
}

TEST_CASE("snapshots are refused, because no part of them can be removed") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  WriteFile(fs, "file", RandomBytes(1, 5000));
  REQUIRE_OK(fs.snapshots().Create("s"));
  const InodeNumber in_snapshot = RequireInode(fs, ".snapshots/s");
  for (const UsagePath& path :
       {UsagePath{in_snapshot, "file"}, UsagePath{in_snapshot, ""},
        UsagePath{kSnapshotDirectory, ""}, UsagePath{kRootInode, ".snapshots"}}) {
    UsageRequest request;
    request.scope.paths = {path};
    REQUIRE_CODE(fs.usage().Measure(request), kUnsupported);
    DuplicateRequest search;
    search.scope.paths = {path};
    REQUIRE_CODE(fs.usage().FindDuplicates(search), kUnsupported);
  }
  const auto shown = fs.snapshots().Show("s");
  REQUIRE_OK(shown);
  UsageRequest request;
  request.scope.paths = {{kRootInode, "file"}};
  REQUIRE_CODE((*shown)->usage().Measure(request), kUnsupported);
  CHECK(Measure(fs, {{kRootInode, "file"}}).total.snapshot_bytes == 5000);
}

TEST_CASE("equal files are found in whatever way they were written") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  const Bytes data = RandomBytes(1, 900'000);
  const InodeNumber first = WriteLargeFile(fs, "large", data);
  WriteFile(fs, "at once", data);
  REQUIRE_OK(fs.entries().Clone({.source = first, .parent = kRootInode, .name = "clone"}));
  // A part of it is written again with the same bytes.
  const InodeNumber rewritten = WriteFile(fs, "rewritten", data);
  REQUIRE_OK(fs.OpenFile(rewritten, false));
  REQUIRE_OK(fs.Write(rewritten, 300'000, ByteView(data).subspan(300'000, 50'000)));
  fs.ReleaseFile(rewritten);
  WriteFile(fs, "other", ByteView(data).first(800'000));
  DuplicateRequest request;
  request.scope.paths = {{.directory = kRootInode}};
  const auto report = fs.usage().FindDuplicates(request);
  REQUIRE_OK(report);
  REQUIRE(report->groups.size() == 1);
  const DuplicateGroup& group = report->groups[0];
  CHECK(group.size == data.size());
  CHECK(group.copies == 4);
  CHECK(group.saved_bytes == 3 * data.size());
  CHECK(report->files == 5);
  store.End();
}

TEST_CASE("a measurement ends with the error of its check, and when the store is closed") {
  GarbageStore store(256u << 10);
  FileSystem& fs = store.Begin();
  for (uint64_t i = 0; i < 20; ++i) store.WriteRandom(i, 600'000);
  UsageRequest request;
  request.scope.paths = {{.directory = kRootInode}};
  request.scope.check = [] { return Status(StatusCode::kAborted, "enough"); };
  REQUIRE_CODE(fs.usage().Measure(request), kAborted);
  request.scope.check = {};
  Status closed;
  std::thread closing([&] { closed = fs.Close(); });
  Status outcome;
  while (outcome.ok()) outcome = fs.usage().Measure(request).status();
  closing.join();
  REQUIRE_OK(closed);
  CHECK(outcome.Is(StatusCode::kInterrupted));
}

TEST_CASE("of two measurements at a time, one waits for the other one") {
  GarbageStore store;
  FileSystem& fs = store.Begin();
  store.WriteRandom(1, 50'000);
  std::atomic<bool> inside = false;
  std::atomic<bool> waited = false;
  UsageRequest first;
  first.scope.paths = {{.directory = kRootInode}};
  first.scope.admit = [&](const UsageInode&) -> Result<bool> {
    inside = true;
    inside.notify_all();
    waited.wait(false);
    return true;
  };
  Status outcome;
  std::thread other([&] { outcome = fs.usage().Measure(first).status(); });
  inside.wait(false);
  UsageRequest second;
  second.scope.paths = {{.directory = kRootInode}};
  second.scope.check = [&] {
    waited = true;  // the first one may go on
    waited.notify_all();
    return Status::Ok();
  };
  REQUIRE_OK(fs.usage().Measure(second));
  other.join();
  REQUIRE_OK(outcome);
  store.End();
}

TEST_CASE("a measurement works in a store that is read-only") {
  GarbageStore store;
  WriteFile(store.Begin(), "file", RandomBytes(1, 5000));
  store.End();
  const auto opened = store.Open(store.env, /*read_only=*/true);
  REQUIRE_OK(opened);
  CHECK(Measure(**opened, {{kRootInode, "file"}}).total.exclusive_bytes == 5000);
  REQUIRE_OK((*opened)->Close());
}

}  // namespace siltfs::testing
