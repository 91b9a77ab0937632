// How large a file may be.
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLargest = (uint64_t{1} << 63) - 1;  // 8 EiB less one byte
constexpr uint64_t kFar = uint64_t{1} << 44;            // 16 TiB

TEST_CASE_METHOD(OnTheFileSystem, "A file can reach the largest offset", "[siltfs]") {
  Descriptor file(Path("largest"), O_RDWR | O_CREAT);
  REQUIRE(WriteAt(file.get(), kLargest - 3, AsBytes("end")) == 0);
  REQUIRE(WriteAt(file.get(), kLargest / 2, AsBytes("middle")) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  REQUIRE(file.Close() == 0);
  DropCaches();
  const Descriptor again(Path("largest"));
  CHECK(StatOf(Path("largest")).st_size == static_cast<off_t>(kLargest));
  CHECK(StatOf(Path("largest")).st_blocks < 1000);
  const Bytes end = ReadAt(again.get(), kLargest - 3, 3);
  CHECK(AsText(end) == "end");
  const Bytes middle = ReadAt(again.get(), kLargest / 2, 6);
  CHECK(AsText(middle) == "middle");
  CHECK(ReadAt(again.get(), kLargest / 4, 100) == Bytes(100, 0));
  CHECK(lseek(again.get(), kLargest / 2 + 65536, SEEK_DATA) >=
        static_cast<off_t>(kLargest - 65536));
}

TEST_CASE_METHOD(OnTheFileSystem, "A write accepted by the cache is not refused later",
                 "[siltfs]") {
  const std::string path = Path("far");
  const Descriptor file(path, O_RDWR | O_CREAT);
  const Bytes data(65536, 'x');
  REQUIRE(Outcome(pwrite(file.get(), data.data(), data.size(), kFar)) == 0);
  CHECK(StatOf(path).st_size == static_cast<off_t>(kFar + data.size()));
  CHECK(Outcome(fsync(file.get())) == 0);
  CHECK(StatOf(path).st_size == static_cast<off_t>(kFar + data.size()));
  CHECK(lseek(file.get(), 0, SEEK_HOLE) == 0);
  CHECK(lseek(file.get(), 0, SEEK_DATA) == static_cast<off_t>(kFar));
  CHECK(lseek(file.get(), kFar, SEEK_HOLE) == static_cast<off_t>(kFar + data.size()));
  DropCaches();
  CHECK(ReadAt(file.get(), kFar, data.size()) == data);
}

TEST_CASE_METHOD(OnTheFileSystem,
                 "A write beyond the largest file fails at once and leaves nothing", "[siltfs]") {
  const std::string path = Path("file");
  REQUIRE(WriteFile(path, "content") == 0);
  const Descriptor file(path, O_RDWR);
  const Bytes data(65536, 'x');
  // The kernel itself refuses such offsets.
  CHECK(Outcome(pwrite(file.get(), "x", 1, kLargest)) == EINVAL);
  CHECK(Outcome(pwrite(file.get(), data.data(), data.size(), kLargest - 4095)) == EINVAL);
  CHECK(StatOf(path).st_size == 7);
  CHECK(Outcome(fsync(file.get())) == 0);
  CHECK(lseek(file.get(), 0, SEEK_HOLE) == 7);
  // Writes at the end of a file that already has the largest size.
  REQUIRE(Outcome(ftruncate(file.get(), kLargest)) == 0);
  const Descriptor appending(path, O_WRONLY | O_APPEND);
  CHECK(Outcome(write(appending.get(), data.data(), data.size())) == EFBIG);
  REQUIRE(Outcome(ftruncate(file.get(), kLargest - 10)) == 0);
  CHECK(write(appending.get(), data.data(), data.size()) == 10);
  CHECK(Outcome(fsync(appending.get())) == 0);
  CHECK(StatOf(path).st_size == static_cast<off_t>(kLargest));
  CHECK(ReadAt(file.get(), kLargest - 10, 10) == Bytes(10, 'x'));
}

TEST_CASE_METHOD(OnTheFileSystem,
                 "A size that is too large is refused and the file stays unchanged", "[siltfs]") {
  const std::string path = Path("file");
  REQUIRE(WriteFile(path, "content") == 0);
  CHECK(Outcome(truncate(path.c_str(), -1)) == EINVAL);
  const Descriptor file(path, O_RDWR);
  CHECK(Outcome(fallocate(file.get(), 0, kLargest, 1)) == EFBIG);
  CHECK(Outcome(copy_file_range(file.get(), nullptr, file.get(), nullptr, 0, 0)) == 0);
  off_t from = 0;
  auto to = static_cast<off_t>(kLargest);
  CHECK(Outcome(copy_file_range(file.get(), &from, file.get(), &to, 5, 0)) == EFBIG);
  CHECK(StatOf(path).st_size == 7);
  CHECK(Outcome(truncate(path.c_str(), kLargest)) == 0);
  CHECK(ReadAt(file.get(), 0, 7) == Bytes({'c', 'o', 'n', 't', 'e', 'n', 't'}));
  CHECK(Outcome(truncate(path.c_str(), 7)) == 0);
}

TEST_CASE_METHOD(OnTheFileSystem, "A file grows and shrinks over four gigabytes") {
  const Descriptor file(Path("large"), O_RDWR | O_CREAT);
  constexpr uint64_t kEdge = uint64_t{1} << 32;
  REQUIRE(WriteAt(file.get(), kEdge - 5, AsBytes("over the edge")) == 0);
  REQUIRE(Outcome(fsync(file.get())) == 0);
  DropCaches();
  const Bytes text = ReadAt(file.get(), kEdge - 5, 20);
  CHECK(AsText(text) == "over the edge");
  REQUIRE(Outcome(ftruncate(file.get(), kEdge + 1)) == 0);
  const Bytes cut = ReadAt(file.get(), kEdge - 5, 20);
  CHECK(AsText(cut) == "over t");
  REQUIRE(Outcome(ftruncate(file.get(), 0)) == 0);
  CHECK(StatOf(Path("large")).st_blocks <= 1);  // 1 while the file is open
}

}  // namespace
}  // namespace siltfs::testing
