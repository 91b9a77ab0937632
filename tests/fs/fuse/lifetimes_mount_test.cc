// Lifetimes: open files without names, lookup counts, the mount itself.
#include <fmt/format.h>

#include <atomic>

#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

struct LifetimesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};

  std::string Path(const std::string& name) const { return mount / name; }
  // Waits until the condition holds. Returns false if it still does not hold after many attempts.
  // The kernel sends FORGET at some later time. Each attempt makes requests, so that time passes.
  template <typename Condition>
  bool ComesTrue(Condition condition) const {
    for (int turn = 0; turn < 5000; ++turn) {
      if (condition()) return true;
      mount.DropCaches();
      static_cast<void>(StatOf(mount.path()));
    }
    return condition();
  }
};

TEST_CASE_METHOD(LifetimesFixture,
                 "An open file without a name can be read and written until it is closed") {
  Descriptor file(Path("a"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, AsBytes("before")) == 0);
  REQUIRE(Outcome(unlink(Path("a").c_str())) == 0);
  CHECK(Outcome(access(Path("a").c_str(), F_OK)) == ENOENT);
  REQUIRE(WriteAt(file.get(), 6, AsBytes(" after")) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  mount.DropCaches();
  const Bytes bytes = ReadAt(file.get(), 0, 100);
  CHECK(AsText(bytes) == "before after");
  struct stat stat = {};
  REQUIRE(fstat(file.get(), &stat) == 0);
  CHECK(stat.st_nlink == 0);
  CHECK(fs.InodeCount() == 2);
  REQUIRE(file.Close() == 0);
  CHECK(ComesTrue([&] { return fs.InodeCount() == 1; }));
}

TEST_CASE_METHOD(LifetimesFixture, "A file replaced by a rename exists while it is open") {
  REQUIRE(WriteFile(Path("old"), "old") == 0);
  REQUIRE(WriteFile(Path("new"), "new") == 0);
  const Descriptor file(Path("old"));
  REQUIRE(Outcome(rename(Path("new").c_str(), Path("old").c_str())) == 0);
  mount.DropCaches();
  const Bytes bytes = ReadAt(file.get(), 0, 10);
  CHECK(AsText(bytes) == "old");
  CHECK(ReadFile(Path("old")) == "new");
}

TEST_CASE_METHOD(LifetimesFixture, "A removed working directory is empty and accepts no entries") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  const Descriptor directory(Path("d"), O_RDONLY | O_DIRECTORY);
  REQUIRE(Outcome(rmdir(Path("d").c_str())) == 0);
  CHECK(Outcome(openat(directory.get(), "x", O_CREAT | O_WRONLY, 0644)) == ENOENT);
}

TEST_CASE_METHOD(LifetimesFixture,
                 "Every lookup is forgotten once the names are unused, for every kind of lookup") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  REQUIRE(WriteFile(Path("d/file"), "x") == 0);
  REQUIRE(Outcome(link(Path("d/file").c_str(), Path("d/hard").c_str())) == 0);
  REQUIRE(Outcome(symlink("file", Path("d/soft").c_str())) == 0);
  REQUIRE(Outcome(mkfifo(Path("d/fifo").c_str(), 0600)) == 0);
  for (int i = 0; i < 300; ++i) REQUIRE(WriteFile(Path(fmt::format("d/{}", i)), "x") == 0);
  CHECK(fs.TotalLookups() > 300);
  CHECK(ComesTrue([&] { return fs.TotalLookups() == 0; }));
  CHECK(fs.TotalOpens() == 0);
  CHECK(ReadFile(Path("d/file")) == "x");
}

TEST_CASE_METHOD(LifetimesFixture,
                 "A file with many names is forgotten as often as it was looked up") {
  REQUIRE(WriteFile(Path("file"), "x") == 0);
  for (int i = 0; i < 50; ++i) {
    REQUIRE(Outcome(link(Path("file").c_str(), Path(std::to_string(i)).c_str())) == 0);
  }
  CHECK(fs.TotalLookups() > 50);
  CHECK(ComesTrue([&] { return fs.TotalLookups() == 0; }));
}

// Counts the kernel's requests.
class CountingFileSystem final : public MemoryFileSystem {
 public:
  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    ++lookups;
    return MemoryFileSystem::Lookup(parent, name);
  }
  Result<Attributes> GetAttributes(InodeNumber inode) override {
    ++attribute_reads;
    return MemoryFileSystem::GetAttributes(inode);
  }
  std::atomic<int> lookups{0};
  std::atomic<int> attribute_reads{0};
};

TEST_CASE("The kernel caches replies, and does not ask again") {
  CountingFileSystem fs;
  const auto made = fs.MakeNode(kRootInode, "file", S_IFREG | 0644, 0, {});
  REQUIRE_OK(made);
  // The file has content: the kernel asks for the attributes of a file without blocks each time.
  REQUIRE_OK(fs.Write(made->inode, 0, AsBytes("content")));
  fs.Forget(made->inode, 1);
  MountedFileSystem mount(fs);
  const std::string file = mount / "file";
  const std::string missing = mount / "missing";
  CHECK(Outcome(access(missing.c_str(), F_OK)) == ENOENT);
  static_cast<void>(StatOf(file));
  // Attributes that came with a name, and missing names, are cached, too.
  const int lookups = fs.lookups;
  CHECK(lookups == 2);
  int attribute_reads = fs.attribute_reads;
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(StatOf(file));
    CHECK(Outcome(access(missing.c_str(), F_OK)) == ENOENT);
  }
  CHECK(fs.lookups == lookups);
  CHECK(fs.attribute_reads == attribute_reads);

  // The kernel asks for the birth time once.
  struct statx born = {};
  const auto ask = [&] {
    return statx(AT_FDCWD, file.c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &born);
  };
  REQUIRE(ask() == 0);
  attribute_reads = fs.attribute_reads;
  for (int i = 0; i < 10; ++i) REQUIRE(ask() == 0);
  CHECK((born.stx_mask & STATX_BTIME) != 0);
  CHECK(fs.attribute_reads == attribute_reads);

  static_cast<void>(StatOf(mount.path()));  // the kernel caches the root's attributes
  attribute_reads = fs.attribute_reads;
  for (int i = 0; i < 10; ++i) static_cast<void>(StatOf(mount.path()));
  CHECK(fs.attribute_reads == attribute_reads);
}

TEST_CASE_METHOD(LifetimesFixture,
                 "Removed files are deleted permanently once the kernel releases them") {
  for (int i = 0; i < 300; ++i) REQUIRE(WriteFile(Path(std::to_string(i)), "x") == 0);
  for (int i = 0; i < 300; ++i) REQUIRE(Outcome(unlink(Path(std::to_string(i)).c_str())) == 0);
  CHECK(ComesTrue([&] { return fs.InodeCount() == 1; }));
}

TEST_CASE_METHOD(LifetimesFixture, "Unmounting ends the service") {
  REQUIRE(WriteFile(Path("a"), "x") == 0);
  // The kernel sends a RELEASE at some later time; it never sends those pending at the unmount.
  CHECK(ComesTrue([&] { return fs.TotalOpens() == 0; }));
  REQUIRE_OK(mount.Unmount());
  CHECK(mount.MountLine().empty());
  CHECK(Outcome(access(Path("a").c_str(), F_OK)) == ENOENT);
}

TEST_CASE("Two file systems can be mounted by one process") {
  MemoryFileSystem one;
  MemoryFileSystem other;
  MountedFileSystem first(one);
  MountedFileSystem second(other);
  REQUIRE(WriteFile(first / "a", "first") == 0);
  REQUIRE(WriteFile(second / "a", "second") == 0);
  REQUIRE_OK(first.Unmount());
  CHECK(ReadFile(second / "a") == "second");
}

TEST_CASE("A file system can be mounted again, and shows its old contents") {
  MemoryFileSystem fs;
  {
    MountedFileSystem mount(fs);
    REQUIRE(WriteFile(mount / "a", "kept") == 0);
    REQUIRE_OK(mount.Unmount());
  }
  MountedFileSystem mount(fs);
  CHECK(ReadFile(mount / "a") == "kept");
}

}  // namespace
}  // namespace siltfs::testing
