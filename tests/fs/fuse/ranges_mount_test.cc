// Holes, allocation and copies of ranges, through the kernel.
#include <linux/falloc.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "store/base/random.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr off_t kMiB = 1 << 20;

Bytes RandomBytes(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

struct RangesFixture {
  MemoryFileSystem fs;
  MountedFileSystem mount{fs};

  std::string Path(const std::string& name) const { return mount / name; }
};

// False if `path` is still reported to have blocks some seconds after it was closed. close() does
// not wait until the file is released, and until then at least one block is reported.
bool HasNoBlocksSoon(const std::string& path) {
  for (int tries = 0; tries < 1000; ++tries) {
    if (StatOf(path).st_blocks == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// Delays the release of the first file until Open() is called.
class FirstReleaseDelayed final : public MemoryFileSystem {
 public:
  void ReleaseFile(InodeNumber inode) override {
    if (!delayed_.exchange(true)) opened_.get_future().wait();
    MemoryFileSystem::ReleaseFile(inode);
  }
  void Open() { opened_.set_value(); }

 private:
  std::atomic<bool> delayed_ = false;
  std::promise<void> opened_;
};

// The results of SEEK_DATA and SEEK_HOLE in a file.
struct Found {
  off_t data;
  off_t hole;
  off_t data_behind;
  int error_behind;
};

// Writes and searches the file in another process. This process answers the kernel's requests, and
// might wait for itself if it had the file open.
Found SeekInFreshFile(const std::string& path) {
  int results[2];
  REQUIRE(pipe(results) == 0);
  const pid_t child = fork();
  if (child == 0) {
    static const char kBytes[8192] = {1};
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0644);
    if (pwrite(fd, kBytes, sizeof kBytes, kMiB) != sizeof kBytes) _exit(1);
    if (ftruncate(fd, 3 * kMiB) != 0) _exit(1);
    if (pwrite(fd, kBytes, sizeof kBytes, 2 * kMiB) != sizeof kBytes) _exit(1);
    Found found = {};
    found.data = lseek(fd, 0, SEEK_DATA);
    found.hole = lseek(fd, kMiB, SEEK_HOLE);
    found.data_behind = lseek(fd, 2 * kMiB + 8192, SEEK_DATA);
    found.error_behind = errno;
    _exit(write(results[1], &found, sizeof found) == sizeof found ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  Found found = {};
  REQUIRE(read(results[0], &found, sizeof found) == sizeof found);
  close(results[0]);
  close(results[1]);
  return found;
}

TEST_CASE_METHOD(RangesFixture, "Data is found although the kernel has not written it back") {
  const Found found = SeekInFreshFile(Path("fresh"));
  CHECK(found.data == kMiB);
  CHECK(found.hole == kMiB + 8192);
  CHECK(found.data_behind == -1);
  CHECK(found.error_behind == ENXIO);
}

TEST_CASE_METHOD(RangesFixture, "Holes are found in a file that is not open for writing") {
  REQUIRE(WriteFile(Path("a"), std::string(8192, 'x')) == 0);
  REQUIRE(Outcome(truncate(Path("a").c_str(), kMiB)) == 0);
  const Descriptor file(Path("a"));
  CHECK(lseek(file.get(), 0, SEEK_HOLE) == 8192);
  CHECK(lseek(file.get(), 100, SEEK_DATA) == 100);
  CHECK(Outcome(lseek(file.get(), 8192, SEEK_DATA)) == ENXIO);
  CHECK(Outcome(lseek(file.get(), kMiB, SEEK_HOLE)) == ENXIO);
}

TEST_CASE_METHOD(RangesFixture, "Opening for writing is counted, and closing undoes it") {
  for (int i = 0; i < 3; ++i) {
    const Found found = SeekInFreshFile(Path("a"));
    CHECK(found.data == kMiB);
  }
  const Descriptor reader(Path("a"));
  CHECK(lseek(reader.get(), 0, SEEK_DATA) == kMiB);
}

TEST_CASE_METHOD(RangesFixture,
                 "With a mount over the mountpoint, a search for data fails and finds no hole") {
  MemoryFileSystem other_fs;
  MountedFileSystem other(other_fs);
  REQUIRE(WriteFile(other / "same number", "x") == 0);
  Descriptor file(Path("fresh"), O_RDWR | O_CREAT);
  REQUIRE(StatOf(Path("fresh")).st_ino == StatOf(other / "same number").st_ino);
  REQUIRE(WriteAt(file.get(), kMiB, AsBytes("data")) == 0);
  REQUIRE(::mount(other.path().c_str(), mount.path().c_str(), nullptr, MS_BIND, nullptr) == 0);
  CHECK(Outcome(lseek(file.get(), 0, SEEK_DATA)) == EINVAL);
  REQUIRE(umount(mount.path().c_str()) == 0);
  CHECK(lseek(file.get(), 0, SEEK_DATA) == kMiB);
}

TEST_CASE_METHOD(RangesFixture, "A file open for writing is never reported as one hole") {
  Descriptor fresh(Path("fresh"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(fresh.get(), 0, RandomBytes(3, 100'000)) == 0);
  CHECK(StatOf(Path("fresh")).st_blocks > 0);
  REQUIRE(Outcome(fsync(fresh.get())) == 0);
  CHECK(StatOf(Path("fresh")).st_blocks > 0);

  REQUIRE(WriteFile(Path("empty"), "") == 0);
  REQUIRE(Outcome(truncate(Path("empty").c_str(), kMiB)) == 0);
  CHECK(HasNoBlocksSoon(Path("empty")));
  Descriptor filled(Path("empty"), O_RDWR);
  REQUIRE(WriteAt(filled.get(), 0, AsBytes("data")) == 0);
  CHECK(StatOf(Path("empty")).st_blocks > 0);
  REQUIRE(filled.Close() == 0);
  CHECK(StatOf(Path("empty")).st_blocks == 8);
}

TEST_CASE("A file without data has no blocks soon after it was closed") {
  FirstReleaseDelayed fs;
  MountedFileSystem mount(fs);
  REQUIRE(WriteFile(mount / "first", "x") == 0);
  // With rings, this file's release is now delayed for some milliseconds (ring_server.h). So the
  // answer to truncate still tells one block.
  REQUIRE(WriteFile(mount / "empty", "") == 0);
  REQUIRE(Outcome(truncate((mount / "empty").c_str(), kMiB)) == 0);
  CHECK(HasNoBlocksSoon(mount / "empty"));
  fs.Open();
}

TEST_CASE_METHOD(RangesFixture,
                 "Ranges can be allocated, zeroed and punched; other modes are refused") {
  const Bytes data = RandomBytes(1, 20'000);
  Descriptor file(Path("a"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, data) == 0);
  auto allocate = [&](int mode, off_t offset, off_t length) {
    return Outcome(fallocate(file.get(), mode, offset, length));
  };
  CHECK(allocate(FALLOC_FL_KEEP_SIZE, 0, 50'000) == 0);
  CHECK(StatOf(Path("a")).st_size == 20'000);
  CHECK(allocate(0, 0, 50'000) == 0);
  CHECK(StatOf(Path("a")).st_size == 50'000);
  CHECK(allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 8192) == 0);
  CHECK(allocate(FALLOC_FL_ZERO_RANGE, 49'000, 2'000) == 0);
  CHECK(StatOf(Path("a")).st_size == 51'000);
  Bytes expected = data;
  std::fill_n(expected.begin() + 4096, 8192, uint8_t{0});
  expected.resize(51'000);
  CHECK(ReadAt(file.get(), 0, 60'000) == expected);
  CHECK(allocate(FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == EOPNOTSUPP);
  CHECK(allocate(FALLOC_FL_INSERT_RANGE, 0, 4096) == EOPNOTSUPP);
  CHECK(allocate(0, INT64_MAX - 4095, 4096) == EFBIG);
}

TEST_CASE_METHOD(RangesFixture, "A copied range has the last written data") {
  const Bytes data = RandomBytes(2, 300'000);
  Descriptor from(Path("a"), O_RDWR | O_CREAT);
  Descriptor to(Path("b"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(from.get(), 0, data) == 0);
  REQUIRE(WriteAt(to.get(), 0, AsBytes("before")) == 0);
  loff_t source = 1000;
  loff_t target = 3;
  REQUIRE(copy_file_range(from.get(), &source, to.get(), &target, 1'000'000, 0) == 299'000);
  CHECK(source == 300'000);
  CHECK(target == 299'003);
  Bytes expected(data.begin() + 1000, data.end());
  expected.insert(expected.begin(), {'b', 'e', 'f'});
  CHECK(ReadAt(to.get(), 0, 400'000) == expected);
  source = 0;
  target = 100;
  CHECK(Outcome(copy_file_range(from.get(), &source, from.get(), &target, 101, 0)) == EINVAL);
}

}  // namespace
}  // namespace siltfs::testing
