// Rollbacks of a store that is mounted: what the kernel is told, and operations that run meanwhile.
// The kernel is played by calls of FileSystem, and by a KernelCache that records its calls.
#include <fmt/format.h>

#include <atomic>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/kernel_cache.h"
#include "store/base/random.h"
#include "tests/fs/core/snapshot_history.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/crash_points.h"

namespace siltfs::testing {
namespace {

class RecordingCache final : public KernelCache {
 public:
  explicit RecordingCache(FileSystem& fs) : fs_(fs) {}

  void ForgetName(InodeNumber parent, const std::string& name) override {
    // The kernel waits for an answer to a request that holds the directory's lock.
    auto answer =
        std::async(std::launch::async, [&] { return fs_.GetAttributes(parent).status(); });
    const bool answered = answer.wait_for(std::chrono::minutes(2)) == std::future_status::ready;
    if (!answered) std::abort();  // the future's destructor would wait for ever
    answer.get().IgnoreError("the directory may be gone");
    names.emplace(parent, name);
  }
  void ForgetInode(InodeNumber inode, bool listing) override {
    if (names.empty()) inodes_before_names.insert(inode);
    if (listing) listings.insert(inode);
  }

  std::set<std::pair<InodeNumber, std::string>> names;
  std::set<InodeNumber> inodes_before_names;
  std::set<InodeNumber> listings;

 private:
  FileSystem& fs_;
};

// The kernel knows this inode until it forgets it.
InodeNumber Know(FileSystem& fs, InodeNumber parent, std::string_view name) {
  const auto found = fs.Lookup(parent, name);
  REQUIRE_OK(found);
  return found->inode;
}

TEST_CASE("a rollback makes the kernel forget all changed inodes and names that it knows") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  const InodeNumber unknown = MakeDir(fs, kRootInode, "unknown");
  f.Write("content", "old");
  f.Write("mode", "1");
  f.Write("same", "1");
  f.Write("removed", "1");
  REQUIRE_OK(fs.MakeSymlink(kRootInode, "symlink", "target", kCaller));
  f.Create("before");
  const Paths before = ReadState(f, std::nullopt);
  const InodeNumber content = Know(fs, kRootInode, "content");
  const InodeNumber mode = Know(fs, kRootInode, "mode");
  const InodeNumber same = Know(fs, kRootInode, "same");
  const InodeNumber symlink = Know(fs, kRootInode, "symlink");
  Know(fs, kRootInode, "dir");
  f.Append(content, "new");
  f.SetMode(mode, 0600);
  AttributeChange owner;
  owner.uid = 7;
  REQUIRE_OK(fs.SetAttributes(symlink, owner));
  REQUIRE_OK(fs.Unlink(kRootInode, "removed"));
  MakeFile(fs, dir, "added");
  const InodeNumber added = Know(fs, dir, "added");
  MakeFile(fs, unknown, "unknown to the kernel");
  // The kernel caches the answer of each of these calls.
  CHECK(fs.GetAttributes(content)->size == 6);
  CHECK(fs.GetAttributes(mode)->mode == 0100600);

  RecordingCache cache(fs);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  using Names = std::set<std::pair<InodeNumber, std::string>>;
  // The kernel keeps the size of a file until it forgets the file's names.
  CHECK(cache.names == Names{{kRootInode, "removed"},
                             {dir, "added"},
                             {kRootInode, "content"},
                             {kRootInode, "mode"}});
  CHECK(cache.inodes_before_names ==
        std::set<InodeNumber>{kRootInode, content, mode, symlink, dir, added});
  // A request to read the link may wait for the end of the rollback, and holds the link's page.
  CHECK_FALSE(cache.listings.contains(symlink));
  CHECK(cache.listings.contains(content));
  CHECK(cache.listings.contains(kRootInode));
  CHECK(cache.listings.contains(dir));
  CHECK(fs.GetAttributes(content)->size == 3);
  CHECK(fs.GetAttributes(mode)->mode != 0100600);
  REQUIRE_OK(fs.GetAttributes(same));
  REQUIRE_CODE(fs.GetAttributes(added), kStale);
  fs.Forget(added, 1);
  RequireSame(ReadState(f, std::nullopt), before);
  for (const InodeNumber inode : {content, mode, same, dir}) fs.Forget(inode, 1);
  f.store.Close();
  RequireSound(f);
}

TEST_CASE("a rollback makes the kernel forget all names of a changed file") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber known = MakeDir(fs, kRootInode, "known");
  const InodeNumber unknown = MakeDir(fs, kRootInode, "unknown");
  f.Write("file", "old");
  const InodeNumber file = Know(fs, kRootInode, "file");
  REQUIRE_OK(fs.Link(file, known, "second"));
  REQUIRE_OK(fs.Link(file, unknown, "third"));
  f.Write("other", "1");
  Know(fs, kRootInode, "known");
  f.Create("before");
  f.Append(file, "new");
  RecordingCache cache(fs);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  using Names = std::set<std::pair<InodeNumber, std::string>>;
  CHECK(cache.names == Names{{kRootInode, "file"}, {known, "second"}});
  fs.Forget(file, 3);
  fs.Forget(known, 1);
}

TEST_CASE("a changed file gets a new generation, and is not opened before it is looked up again") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const auto generation_of = [&fs](std::string_view name) {
    const auto found = fs.Lookup(kRootInode, name);
    REQUIRE_OK(found);
    return found->generation;
  };
  f.Write("file", "old");
  f.Write("same", "1");
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  f.Create("before");
  f.Append(f.At("file"), "new");
  f.SetMode(dir, 0700);
  f.Write("removed", "1");
  const InodeNumber file = Know(fs, kRootInode, "file");
  const InodeNumber same = Know(fs, kRootInode, "same");
  const InodeNumber removed = Know(fs, kRootInode, "removed");
  Know(fs, kRootInode, "dir");
  CHECK(generation_of("file") == 0);
  // Opens the file at the earliest moment at which the kernel can.
  class OpeningCache final : public KernelCache {
   public:
    OpeningCache(FileSystem& fs, InodeNumber file) : fs_(fs), file_(file) {}
    void ForgetName(InodeNumber, const std::string&) override {
      opened.push_back(fs_.OpenFile(file_, false));
    }
    void ForgetInode(InodeNumber, bool) override {}
    std::vector<Status> opened;

   private:
    FileSystem& fs_;
    const InodeNumber file_;
  };
  OpeningCache cache(fs, file);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  REQUIRE(cache.opened.size() == 2);
  for (const Status& status : cache.opened) REQUIRE_CODE(status, kStale);
  REQUIRE_CODE(fs.OpenFile(file, false), kStale);
  REQUIRE_OK(fs.OpenFile(same, false));
  fs.ReleaseFile(same);
  const auto again = fs.Lookup(kRootInode, "file");
  REQUIRE_OK(again);
  CHECK(again->inode == file);
  const uint64_t generation = again->generation;
  CHECK(generation > 0);
  CHECK(generation_of("file") == generation);
  CHECK(fs.GenerationOf(file) == generation);
  CHECK(generation_of("same") == 0);
  // Programs may work in the directory.
  CHECK(generation_of("dir") == 0);
  REQUIRE_OK(fs.OpenFile(file, false));
  fs.ReleaseFile(file);
  // The second rollback brings the removed file back.
  RecordingCache recording(fs);
  REQUIRE_OK(fs.snapshots().RollBack("kept", "last", &recording));
  REQUIRE_CODE(fs.OpenFile(removed, false), kStale);
  CHECK(generation_of("removed") > 0);
  const uint64_t last = generation_of("file");
  CHECK(last > generation);
  fs.Forget(file, 1);  // one of several lookups, so the kernel keeps the inode
  CHECK(generation_of("file") == last);
  // What the kernel has forgotten, it makes again.
  fs.Forget(file, 1000);
  CHECK(generation_of("file") == 0);
}

TEST_CASE("a file whose newest name is gone is found by its other names") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  const InodeNumber dir = MakeDir(fs, kRootInode, "dir");
  f.Write("file", "old");
  const InodeNumber file = Know(fs, kRootInode, "file");
  REQUIRE_OK(fs.Link(file, dir, "newest"));
  REQUIRE_OK(fs.Unlink(dir, "newest"));
  f.Create("before");
  f.Append(file, "new");
  RecordingCache cache(fs);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  using Names = std::set<std::pair<InodeNumber, std::string>>;
  CHECK(cache.names == Names{{kRootInode, "file"}});
  fs.Forget(file, 2);
}

TEST_CASE("times that the kernel writes back after a rollback are not those of the files") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  f.Write("file", "old");
  f.Write("other", "old");
  const InodeNumber file = Know(fs, kRootInode, "file");
  f.Create("before");
  const int64_t mtime = fs.GetAttributes(file)->mtime;
  f.Append(file, "new");
  f.Write("gone", "1");
  const InodeNumber gone = Know(fs, kRootInode, "gone");
  AttributeChange late;
  late.mtime = mtime + 1'000'000'000;
  late.ctime = late.mtime;
  // The kernel writes times back when it forgets the last name.
  class WritingCache final : public KernelCache {
   public:
    WritingCache(FileSystem& fs, InodeNumber file, const AttributeChange& late)
        : fs_(fs), file_(file), late_(late) {}
    void ForgetName(InodeNumber, const std::string&) override {
      written.push_back(fs_.SetAttributes(file_, late_).status());
    }
    void ForgetInode(InodeNumber, bool) override {}
    std::vector<Status> written;

   private:
    FileSystem& fs_;
    const InodeNumber file_;
    const AttributeChange late_;
  };
  WritingCache cache(fs, file, late);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  REQUIRE(cache.written.size() == 2);
  for (const Status& status : cache.written) REQUIRE_OK(status);
  CHECK(fs.GetAttributes(file)->mtime == mtime);
  // The kernel may write the times of a removed file back at any time.
  REQUIRE_OK(fs.SetAttributes(gone, late));
  REQUIRE_CODE(fs.GetAttributes(gone), kStale);
  AttributeChange other = late;
  other.mode = 0600;
  REQUIRE_CODE(fs.SetAttributes(gone, other), kStale);
  // Changes after the next lookup are those of programs.
  REQUIRE_OK(fs.Lookup(kRootInode, "file"));
  REQUIRE_OK(fs.SetAttributes(file, late));
  CHECK(fs.GetAttributes(file)->mtime == late.mtime);
  fs.Forget(file, 2);
  fs.Forget(gone, 1);
  REQUIRE_CODE(fs.SetAttributes(gone, late), kStale);
}

TEST_CASE("a rollback removes files without names that the kernel has not forgotten") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  f.Write("gone", "1");
  f.Write("kept", "1");
  f.Create("before");
  const Paths before = ReadState(f, std::nullopt);
  const InodeNumber gone = Know(fs, kRootInode, "gone");
  MakeFile(fs, kRootInode, "new");
  const InodeNumber unnamed = Know(fs, kRootInode, "new");
  REQUIRE_OK(fs.Unlink(kRootInode, "gone"));
  REQUIRE_OK(fs.Unlink(kRootInode, "new"));
  const Paths after = ReadState(f, std::nullopt);
  RecordingCache cache(fs);
  REQUIRE_OK(fs.snapshots().RollBack("before", "kept", &cache));
  RequireSame(ReadState(f, std::nullopt), before);
  RequireSame(ReadState(f, "kept"), after);
  REQUIRE_CODE(fs.GetAttributes(unnamed), kStale);
  // The kernel may still have times of the file to write back.
  AttributeChange late;
  late.mtime = late.ctime = 1;
  REQUIRE_OK(fs.SetAttributes(unnamed, late));
  // The kernel forgets the inodes later. One of them has a name again.
  fs.Forget(unnamed, 1);
  fs.Forget(gone, 1);
  RequireSame(ReadState(f, std::nullopt), before);
  f.store.Close();
  RequireSound(f);
}

TEST_CASE("after a rollback that failed in the middle, all calls fail until the next opening") {
  InterruptedRollback rollback(2);
  SnapshotFixture& f = rollback.f;
  RecordingCache cache(*f.fs);
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "kept", &cache), kInterrupted);
  REQUIRE_CODE(f.fs->GetAttributes(kRootInode), kIoError);
  REQUIRE_CODE(f.fs->Lookup(kRootInode, "dir"), kIoError);
  REQUIRE_CODE(f.fs->MakeDirectory(kRootInode, "x", 0755, kCaller), kIoError);
  REQUIRE_CODE(f.fs->ReadDirectory(kRootInode, 0, [](const DirectoryRecord&) { return true; }),
               kIoError);
  REQUIRE_CODE(f.fs->snapshots().Create("other"), kIoError);
  REQUIRE_CODE(f.fs->snapshots().RollBack("before", "other"), kIoError);
  f.store.Close();
  rollback.RequireCompleted();
}

// Changes the files of the store until it is told to stop. Calls may fail, because a rollback
// removes inodes and revives others.
void ChangeFiles(FileSystem& fs, uint64_t seed, const std::atomic<bool>& stop) {
  Random random(seed);
  while (!stop) {
    const std::string name = fmt::format("f{}", random.Below(12));
    const auto found = fs.Lookup(kRootInode, name);
    const uint64_t action = random.Below(5);
    if (!found.ok() || action == 0) {
      const auto made = fs.CreateFile(kRootInode, name, 0644, kCaller);
      if (made.ok()) {
        const Bytes bytes = RandomBytes(random.Next(), random.Below(3000));
        fs.Write(made->inode, 0, bytes).IgnoreError("may be gone");
        fs.ReleaseFile(made->inode);
        fs.Forget(made->inode, 1);
      }
    } else if (action == 1) {
      fs.Unlink(kRootInode, name).IgnoreError("may be gone");
    } else if (action == 2) {
      const std::string target = fmt::format("f{}", random.Below(12));
      fs.Rename(kRootInode, name, kRootInode, target, RenameMode::kReplace)
          .IgnoreError("may be gone");
    } else if (action == 3) {
      AttributeChange change;
      change.size = random.Below(5000);
      fs.SetAttributes(found->inode, change).status().IgnoreError("may be gone");
    } else if (fs.OpenFile(found->inode, false).ok()) {
      Bytes out(2000);
      fs.Read(found->inode, 0, out).status().IgnoreError("may be gone");
      fs.ReleaseFile(found->inode);
    }
    if (found.ok()) fs.Forget(found->inode, 1);
  }
}

TEST_CASE("operations that run during rollbacks see one of the two states") {
  SnapshotFixture f;
  FileSystem& fs = *f.fs;
  for (int i = 0; i < 12; ++i) f.Write(fmt::format("f{}", i), "the first state");
  f.Create("s0");
  std::vector<Paths> states = {ReadState(f, std::nullopt)};
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    threads.emplace_back([&fs, &stop, seed] { ChangeFiles(fs, seed, stop); });
  RecordingCache cache(fs);
  Random random(9);
  const int rollbacks = kIsSanitized ? 15 : 60;
  for (int done = 0; done < rollbacks;) {
    const std::string kept = fmt::format("s{}", states.size());
    const Status status =
        fs.snapshots()
            .RollBack(fmt::format("s{}", random.Below(states.size())), kept, &cache)
            .status();
    if (!status.ok()) {
      REQUIRE_CODE(status, kInUse);
      continue;
    }
    ++done;
    states.push_back(ReadState(f, kept));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  // Nothing that ran meanwhile has changed what a snapshot shows.
  for (size_t i = 0; i < states.size(); ++i) {
    CAPTURE(i);
    RequireSame(ReadState(f, fmt::format("s{}", i)), states[i]);
  }
  REQUIRE_OK(fs.snapshots().RollBack("s0", "last"));
  RequireSame(ReadState(f, std::nullopt), states[0]);
  f.store.Close();
  RequireSound(f);
}

}  // namespace
}  // namespace siltfs::testing
