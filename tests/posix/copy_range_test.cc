// copy_file_range(2): a copy that takes no space.
#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Calls copy_file_range until `length` bytes are copied, and sets `copied` to their number. Returns
// 0 or an errno.
int Copy(int from, off_t from_offset, int to, off_t to_offset, size_t length, size_t& copied) {
  copied = 0;
  while (copied < length) {
    const ssize_t count = copy_file_range(from, &from_offset, to, &to_offset, length - copied, 0);
    if (count < 0) return errno;
    if (count == 0) break;
    copied += static_cast<size_t>(count);
  }
  return 0;
}

struct FileToCopy : OnTheFileSystem {
  Descriptor file{Path("source"), O_RDWR | O_CREAT};
  Bytes data = Bytes(3 << 20);
  size_t copied = 0;

  FileToCopy() {
    Random(7).Fill(data);
    REQUIRE(WriteAt(file.get(), 0, data) == 0);
  }

  Bytes Part(size_t offset, size_t length) const {
    return Bytes(data.begin() + static_cast<ptrdiff_t>(offset),
                 data.begin() + static_cast<ptrdiff_t>(offset + length));
  }
  Bytes Content(const std::string& name) const {
    const Descriptor reader(Path(name));
    return ReadAt(reader.get(), 0, static_cast<size_t>(StatOf(Path(name)).st_size) + 1);
  }
};

TEST_CASE_METHOD(FileToCopy, "A whole file is copied though it was never synced") {
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  REQUIRE(Copy(file.get(), 0, target.get(), 0, data.size() + 1000, copied) == 0);
  CHECK(copied == data.size());
  CHECK(Content("copy") == data);
  DropCaches();
  CHECK(Content("copy") == data);
  CHECK(Content("source") == data);
}

TEST_CASE_METHOD(FileToCopy, "Changes of a copy and of its source are independent") {
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  REQUIRE(Copy(file.get(), 0, target.get(), 0, data.size(), copied) == 0);
  REQUIRE(WriteAt(target.get(), 1'000'000, AsBytes("in the copy")) == 0);
  REQUIRE(WriteAt(file.get(), 2'000'000, AsBytes("in the source")) == 0);
  Bytes copy = data;
  std::copy_n(AsBytes("in the copy").begin(), 11, copy.begin() + 1'000'000);
  std::copy_n(AsBytes("in the source").begin(), 13, data.begin() + 2'000'000);
  DropCaches();
  CHECK(Content("copy") == copy);
  CHECK(Content("source") == data);
}

TEST_CASE_METHOD(FileToCopy,
                 "Ranges can be copied anywhere in a file, over data, holes and its end") {
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  Bytes expected(2'000'000, uint8_t{'x'});
  REQUIRE(WriteAt(target.get(), 0, expected) == 0);
  for (const auto& [from, to, length] : {std::array<size_t, 3>{0, 100, 50},
                                         {12'345, 777'777, 123'456},
                                         {1 << 20, 1 << 20, 1 << 18},
                                         {2'000'001, 1'900'000, 500'000},
                                         {5, 3'000'000, 4096}}) {
    REQUIRE(Copy(file.get(), static_cast<off_t>(from), target.get(), static_cast<off_t>(to), length,
                 copied) == 0);
    REQUIRE(copied == length);
    expected.resize(std::max(expected.size(), to + length));
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(from), length,
                expected.begin() + static_cast<ptrdiff_t>(to));
    CHECK(Content("copy") == expected);
  }
  DropCaches();
  CHECK(Content("copy") == expected);
}

TEST_CASE_METHOD(FileToCopy, "At and past the source's end nothing is copied") {
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  const auto size = static_cast<off_t>(data.size());
  REQUIRE(Copy(file.get(), size, target.get(), 0, 4096, copied) == 0);
  CHECK(copied == 0);
  REQUIRE(Copy(file.get(), size + 5000, target.get(), 0, 4096, copied) == 0);
  CHECK(copied == 0);
  CHECK(StatOf(Path("copy")).st_size == 0);
}

TEST_CASE_METHOD(FileToCopy, "Holes are copied as holes") {
  REQUIRE(Outcome(ftruncate(file.get(), 64 << 20)) == 0);
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  REQUIRE(Copy(file.get(), 0, target.get(), 0, 64 << 20, copied) == 0);
  CHECK(copied == 64 << 20);
  REQUIRE(Outcome(fsync(target.get())) == 0);
  DropCaches();
  CHECK(StatOf(Path("copy")).st_size == 64 << 20);
  CHECK(StatOf(Path("copy")).st_blocks * 512 < 4 << 20);
  CHECK(lseek(target.get(), 5 << 20, SEEK_DATA) < 0);
}

TEST_CASE_METHOD(FileToCopy, "A range can be copied within a file, but not onto itself") {
  REQUIRE(Copy(file.get(), 0, file.get(), 1 << 20, 1 << 20, copied) == 0);
  std::copy_n(data.begin(), 1 << 20, data.begin() + (1 << 20));
  CHECK(Content("source") == data);
  CHECK(Copy(file.get(), 0, file.get(), 4096, 8192, copied) == EINVAL);
  CHECK(Copy(file.get(), 4096, file.get(), 0, 8192, copied) == EINVAL);
  CHECK(Copy(file.get(), 0, file.get(), 0, 4096, copied) == EINVAL);
  CHECK(Copy(file.get(), 0, file.get(), 4096, 4096, copied) == 0);
  std::copy_n(data.begin(), 4096, data.begin() + 4096);
  DropCaches();
  CHECK(Content("source") == data);
}

TEST_CASE_METHOD(FileToCopy, "A copy needs a readable source and a writable target") {
  const Descriptor target(Path("copy"), O_RDWR | O_CREAT);
  const Descriptor write_only(Path("source"), O_WRONLY);
  const Descriptor read_only(Path("copy"), O_RDONLY);
  const Descriptor appending(Path("copy"), O_WRONLY | O_APPEND);
  const Descriptor root(directory.path(), O_RDONLY | O_DIRECTORY);
  CHECK(Copy(write_only.get(), 0, target.get(), 0, 10, copied) == EBADF);
  CHECK(Copy(file.get(), 0, read_only.get(), 0, 10, copied) == EBADF);
  CHECK(Copy(file.get(), 0, appending.get(), 0, 10, copied) == EBADF);
  CHECK(Copy(root.get(), 0, target.get(), 0, 10, copied) == EISDIR);
  off_t from = 0;
  off_t to = 0;
  CHECK(Outcome(copy_file_range(file.get(), &from, target.get(), &to, 10, 1)) == EINVAL);
}

TEST_CASE_METHOD(FileToCopy, "Copies store nothing", "[siltfs]") {
  REQUIRE(Outcome(fsync(file.get())) == 0);
  const double stored = StoreFigure("stored_bytes");
  const double logical = StoreFigure("logical_bytes");
  for (int i = 0; i < 10; ++i) {
    Descriptor target(Path("copy" + std::to_string(i)), O_RDWR | O_CREAT);
    REQUIRE(Copy(file.get(), 0, target.get(), 0, data.size(), copied) == 0);
    REQUIRE(Outcome(fsync(target.get())) == 0);
    REQUIRE(target.Close() == 0);
  }
  CHECK(StoreFigure("logical_bytes") - logical >= 9.9 * static_cast<double>(data.size()));
  CHECK(StoreFigure("stored_bytes") - stored < 0.1 * static_cast<double>(data.size()));
}

}  // namespace
}  // namespace siltfs::testing
