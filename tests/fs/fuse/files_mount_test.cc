// File contents through the kernel's writeback cache.
#include <sys/mman.h>

#include <fstream>

#include "fs/fuse/kernel_readahead.h"
#include "fs/fuse/writeback.h"
#include "store/base/random.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

Bytes RandomBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

struct FilesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};

  std::string Path(const std::string& name) const { return mount / name; }
  // Returns the content that has arrived in the file system, not that in the kernel's caches.
  Bytes Stored(const std::string& name) {
    const InodeNumber inode = StatOf(Path(name)).st_ino;
    Bytes bytes(fs.GetAttributes(inode)->size);
    REQUIRE(*fs.Read(inode, 0, bytes) == bytes.size());
    return bytes;
  }
};

TEST_CASE_METHOD(FilesFixture,
                 "A file of many megabytes arrives as written and is read back as it is") {
  const Bytes data = RandomBytes(1, (24 << 20) + 12345);
  {
    Descriptor file(Path("big"), O_RDWR | O_CREAT);
    REQUIRE(WriteAt(file.get(), 0, data) == 0);
    REQUIRE(Outcome(fsync(file.get())) == 0);
    CHECK(Stored("big") == data);
    REQUIRE(file.Close() == 0);
  }
  mount.DropCaches();
  const Descriptor file(Path("big"));
  CHECK(ReadAt(file.get(), 0, data.size() + 1) == data);
  CHECK(StatOf(Path("big")).st_size == static_cast<off_t>(data.size()));
}

TEST_CASE_METHOD(FilesFixture, "The kernel reads a megabyte ahead once a file was opened") {
  const std::string path = fuse::ReadaheadPath(fuse::DeviceOf(mount.path()));
  const auto kilobytes = [&path] {
    int value = 0;
    std::ifstream(path) >> value;
    return value;
  };
  {
    std::ofstream writable(path, std::ios::in);
    if (!writable) {  // without a writable /sys the kernel's own value stays
      CHECK(WriteFile(Path("a"), "one") == 0);
      return;
    }
  }
  REQUIRE(kilobytes() > 0);
  REQUIRE(WriteFile(Path("a"), "one") == 0);
  CHECK(kilobytes() == 1024);
  // A value that an administrator sets later is kept.
  std::ofstream(path) << 256 << std::flush;
  REQUIRE(WriteFile(Path("b"), "two") == 0);
  CHECK(kilobytes() == 256);
}

TEST_CASE_METHOD(FilesFixture, "A close writes data to the file system without a sync") {
  REQUIRE(WriteFile(Path("a"), "closed") == 0);
  const Bytes stored = Stored("a");
  CHECK(AsText(stored) == "closed");
  CHECK(StatOf(Path("a")).st_blocks > 0);
}

TEST_CASE_METHOD(FilesFixture,
                 "A part of a page can be changed in a file opened only for writing") {
  const Bytes data = RandomBytes(2, 20'000);
  {
    Descriptor file(Path("a"), O_WRONLY | O_CREAT);
    REQUIRE(WriteAt(file.get(), 0, data) == 0);
    REQUIRE(file.Close() == 0);
  }
  mount.DropCaches();
  Bytes expected = data;
  std::copy_n(AsBytes("patched").begin(), 7, expected.begin() + 5000);
  {
    Descriptor file(Path("a"), O_WRONLY);
    REQUIRE(WriteAt(file.get(), 5000, AsBytes("patched")) == 0);
    REQUIRE(file.Close() == 0);
  }
  CHECK(Stored("a") == expected);
}

TEST_CASE_METHOD(FilesFixture, "Appending goes to the end, also after another program appended") {
  Descriptor one(Path("log"), O_WRONLY | O_CREAT | O_APPEND);
  Descriptor other(Path("log"), O_WRONLY | O_APPEND);
  REQUIRE(write(one.get(), "one ", 4) == 4);
  REQUIRE(write(other.get(), "other ", 6) == 6);
  REQUIRE(write(one.get(), "one", 3) == 3);
  REQUIRE(one.Close() == 0);
  REQUIRE(other.Close() == 0);
  CHECK(ReadFile(Path("log")) == "one other one");
  const Bytes stored = Stored("log");
  CHECK(AsText(stored) == "one other one");
}

TEST_CASE_METHOD(FilesFixture, "Opening with truncation empties the file") {
  REQUIRE(WriteFile(Path("a"), "a long first version") == 0);
  REQUIRE(WriteFile(Path("a"), "short") == 0);
  CHECK(ReadFile(Path("a")) == "short");
  Descriptor emptied(Path("a"), O_RDONLY | O_TRUNC);
  CHECK(StatOf(Path("a")).st_size == 0);
  CHECK(Stored("a").empty());
}

TEST_CASE_METHOD(FilesFixture, "Truncation cuts the file, and growth adds zeros") {
  REQUIRE(WriteFile(Path("a"), "0123456789") == 0);
  REQUIRE(Outcome(truncate(Path("a").c_str(), 4)) == 0);
  CHECK(ReadFile(Path("a")) == "0123");
  REQUIRE(Outcome(truncate(Path("a").c_str(), 8)) == 0);
  CHECK(ReadFile(Path("a")) == std::string("0123\0\0\0\0", 8));
  mount.DropCaches();
  CHECK(ReadFile(Path("a")) == std::string("0123\0\0\0\0", 8));
}

TEST_CASE_METHOD(FilesFixture, "A hole reads as zeros and takes no blocks") {
  Descriptor file(Path("sparse"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), uint64_t{1} << 40, AsBytes("end")) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  CHECK(StatOf(Path("sparse")).st_size == (off_t{1} << 40) + 3);
  mount.DropCaches();
  CHECK(StatOf(Path("sparse")).st_blocks <= 16);
  CHECK(ReadAt(file.get(), uint64_t{1} << 39, 100) == Bytes(100, 0));
  const Bytes end = ReadAt(file.get(), uint64_t{1} << 40, 3);
  CHECK(AsText(end) == "end");
}

TEST_CASE_METHOD(FilesFixture, "A mapping and the file have the same content") {
  const Bytes data = RandomBytes(3, 3 * 4096);
  Descriptor file(Path("mapped"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, data) == 0);
  void* map = mmap(nullptr, data.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  REQUIRE(map != MAP_FAILED);
  auto* bytes = static_cast<uint8_t*>(map);
  CHECK(std::equal(data.begin(), data.end(), bytes));
  bytes[5000] = static_cast<uint8_t>(~data[5000]);
  REQUIRE(msync(map, data.size(), MS_SYNC) == 0);
  CHECK(Stored("mapped")[5000] == static_cast<uint8_t>(~data[5000]));
  munmap(map, data.size());
}

TEST_CASE_METHOD(FilesFixture, "Direct I/O bypasses the kernel's cache") {
  Descriptor file(Path("direct"), O_RDWR | O_CREAT | O_DIRECT);
  REQUIRE(file.error() == 0);
  alignas(4096) uint8_t page[4096];
  std::fill(std::begin(page), std::end(page), uint8_t{42});
  REQUIRE(pwrite(file.get(), page, sizeof page, 4096) == sizeof page);
  CHECK(Stored("direct").size() == 8192);
  CHECK(Stored("direct")[4096] == 42);
}

TEST_CASE_METHOD(FilesFixture, "Many small writes from several threads all arrive") {
  constexpr int kThreads = 8;
  constexpr int kFiles = 50;
  std::vector<std::thread> writers;
  std::vector<int> failures(kThreads, 0);
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      const std::string directory = Path("d" + std::to_string(t));
      if (mkdir(directory.c_str(), 0755) != 0) ++failures[static_cast<size_t>(t)];
      for (int i = 0; i < kFiles; ++i) {
        if (WriteFile(directory + "/" + std::to_string(i), std::to_string(t * 1000 + i)) != 0) {
          ++failures[static_cast<size_t>(t)];
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(failures == std::vector<int>(kThreads, 0));
  mount.DropCaches();
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kFiles; ++i) {
      CHECK(ReadFile(Path("d" + std::to_string(t) + "/" + std::to_string(i))) ==
            std::to_string(t * 1000 + i));
    }
  }
}

TEST_CASE_METHOD(FilesFixture, "Unmounting writes cached data to the file system") {
  InodeNumber inode = 0;
  {
    Descriptor file(Path("a"), O_WRONLY | O_CREAT);
    inode = StatOf(Path("a")).st_ino;
    REQUIRE(WriteAt(file.get(), 0, AsBytes("cached")) == 0);
  }
  REQUIRE_OK(mount.Unmount());
  Bytes bytes(6);
  REQUIRE(*fs.Read(inode, 0, bytes) == 6);
  CHECK(AsText(bytes) == "cached");
}

}  // namespace
}  // namespace siltfs::testing
