// Sparse files: lseek(2) with SEEK_DATA and SEEK_HOLE.
#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kMiB = 1 << 20;

Bytes SomeBytes(size_t size) {
  Bytes bytes(size);
  Random(1).Fill(bytes);
  return bytes;
}

// Returns the offset found, or the negative errno.
int64_t Seek(int fd, int64_t offset, int whence) {
  const off_t found = lseek(fd, offset, whence);
  return found < 0 ? -errno : found;
}

struct SparseFile : OnTheFileSystem {
  // The file has data in [0, 64 K) and [1 M, 1 M + 64 K), and ends at 2 M.
  static constexpr uint64_t kDataBytes = 65536;
  static constexpr uint64_t kSize = 2 * kMiB;

  Descriptor file{Path("sparse"), O_RDWR | O_CREAT};

  SparseFile() {
    REQUIRE(WriteAt(file.get(), 0, SomeBytes(kDataBytes)) == 0);
    REQUIRE(WriteAt(file.get(), kMiB, SomeBytes(kDataBytes)) == 0);
    REQUIRE(Outcome(ftruncate(file.get(), kSize)) == 0);
  }

  void CheckMap() const {
    CHECK(Seek(file.get(), 0, SEEK_DATA) == 0);
    CHECK(Seek(file.get(), 0, SEEK_HOLE) == kDataBytes);
    CHECK(Seek(file.get(), kDataBytes - 1, SEEK_HOLE) == kDataBytes);
    CHECK(Seek(file.get(), 1234, SEEK_DATA) == 1234);
    CHECK(Seek(file.get(), kDataBytes, SEEK_HOLE) == kDataBytes);
    CHECK(Seek(file.get(), 500'000, SEEK_HOLE) == 500'000);
    CHECK(Seek(file.get(), kDataBytes, SEEK_DATA) == kMiB);
    CHECK(Seek(file.get(), 500'000, SEEK_DATA) == kMiB);
    CHECK(Seek(file.get(), kMiB, SEEK_HOLE) == kMiB + kDataBytes);
    CHECK(Seek(file.get(), kMiB + kDataBytes, SEEK_DATA) == -ENXIO);
    CHECK(Seek(file.get(), kSize - 1, SEEK_DATA) == -ENXIO);
    CHECK(Seek(file.get(), kSize - 1, SEEK_HOLE) == kSize - 1);
  }
};

TEST_CASE_METHOD(SparseFile, "Data and holes are found while the kernel still holds the data") {
  CheckMap();
}

TEST_CASE_METHOD(SparseFile, "Data and holes are found in stored files") {
  REQUIRE(file.Close() == 0);
  DropCaches();
  const Descriptor again(Path("sparse"));
  CHECK(Seek(again.get(), 0, SEEK_HOLE) == kDataBytes);
  CHECK(Seek(again.get(), kDataBytes, SEEK_DATA) == kMiB);
  CHECK(Seek(again.get(), kMiB, SEEK_HOLE) == kMiB + kDataBytes);
  CHECK(Seek(again.get(), kMiB + kDataBytes, SEEK_DATA) == -ENXIO);
  CHECK(ReadAt(again.get(), kDataBytes, kMiB - kDataBytes) == Bytes(kMiB - kDataBytes, 0));
}

TEST_CASE_METHOD(SparseFile, "Past the end of the file there is neither data nor a hole") {
  for (const uint64_t offset : {kSize, kSize + 1, 10 * kSize}) {
    CHECK(Seek(file.get(), static_cast<int64_t>(offset), SEEK_DATA) == -ENXIO);
    CHECK(Seek(file.get(), static_cast<int64_t>(offset), SEEK_HOLE) == -ENXIO);
  }
  CHECK(Seek(file.get(), -1, SEEK_DATA) == -ENXIO);
  CHECK(Seek(file.get(), -1, SEEK_HOLE) == -ENXIO);
}

TEST_CASE_METHOD(SparseFile, "A failed search does not move the file's position") {
  REQUIRE(Seek(file.get(), 4321, SEEK_SET) == 4321);
  REQUIRE(Seek(file.get(), kSize, SEEK_DATA) == -ENXIO);
  CHECK(Seek(file.get(), 0, SEEK_CUR) == 4321);
  REQUIRE(Seek(file.get(), 500'000, SEEK_DATA) == kMiB);
  CHECK(Seek(file.get(), 0, SEEK_CUR) == kMiB);
}

TEST_CASE_METHOD(SparseFile, "Data written into a hole through another descriptor is found") {
  const Descriptor other(Path("sparse"), O_WRONLY);
  REQUIRE(WriteAt(other.get(), kMiB / 2, SomeBytes(4096)) == 0);
  CHECK(Seek(file.get(), kDataBytes, SEEK_DATA) == kMiB / 2);
  CHECK(Seek(file.get(), kMiB / 2, SEEK_HOLE) == kMiB / 2 + 4096);
}

TEST_CASE_METHOD(OnTheFileSystem, "The end of a file without holes counts as a hole") {
  Descriptor file(Path("dense"), O_RDWR | O_CREAT);
  const Bytes data = SomeBytes(100'000);
  REQUIRE(WriteAt(file.get(), 0, data) == 0);
  CHECK(Seek(file.get(), 0, SEEK_HOLE) == 100'000);
  CHECK(Seek(file.get(), 99'999, SEEK_DATA) == 99'999);
  CHECK(Seek(file.get(), 100'000, SEEK_HOLE) == -ENXIO);
}

TEST_CASE_METHOD(OnTheFileSystem, "An empty file has neither data nor a hole") {
  const Descriptor file(Path("empty"), O_RDWR | O_CREAT);
  CHECK(Seek(file.get(), 0, SEEK_DATA) == -ENXIO);
  CHECK(Seek(file.get(), 0, SEEK_HOLE) == -ENXIO);
}

TEST_CASE_METHOD(SparseFile, "Holes take no blocks") {
  REQUIRE(file.Close() == 0);
  CHECK(StatOf(Path("sparse")).st_blocks * 512 >= static_cast<int64_t>(2 * kDataBytes));
  CHECK(StatOf(Path("sparse")).st_blocks * 512 <= static_cast<int64_t>(3 * kDataBytes));
}

TEST_CASE_METHOD(OnTheFileSystem, "Written zeros become holes", "[siltfs]") {
  const Descriptor file(Path("zeros"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), 0, Bytes(kMiB, 0)) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  DropCaches();
  CHECK(Seek(file.get(), 0, SEEK_DATA) == -ENXIO);
  CHECK(ReadAt(file.get(), 0, kMiB) == Bytes(kMiB, 0));
}

}  // namespace
}  // namespace siltfs::testing
