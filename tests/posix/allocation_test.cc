// fallocate(2).
#include "store/base/random.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct FileOfData : OnTheFileSystem {
  Descriptor file{Path("file"), O_RDWR | O_CREAT};
  Bytes model = Bytes(300'000);

  FileOfData() {
    Random(1).Fill(model);
    REQUIRE(WriteAt(file.get(), 0, model) == 0);
  }

  int Allocate(int mode, off_t offset, off_t length) const {
    return Outcome(fallocate(file.get(), mode, offset, length));
  }
  void Zero(size_t offset, size_t length) {
    model.resize(std::max(model.size(), offset + length));
    std::fill_n(model.begin() + static_cast<ptrdiff_t>(offset), length, uint8_t{0});
  }
  // Checks the content, first with the kernel's caches and again after dropping them.
  void CheckContent() const {
    CHECK(StatOf(Path("file")).st_size == static_cast<off_t>(model.size()));
    CHECK(ReadAt(file.get(), 0, model.size() + 1) == model);
    DropCaches();
    CHECK(StatOf(Path("file")).st_size == static_cast<off_t>(model.size()));
    CHECK(ReadAt(file.get(), 0, model.size() + 1) == model);
  }
};

TEST_CASE_METHOD(FileOfData, "Allocation lets a file grow and keeps its data") {
  CHECK(Allocate(0, 1000, 5000) == 0);
  CheckContent();
  CHECK(Allocate(0, 290'000, 110'000) == 0);
  model.resize(400'000);
  CheckContent();
  CHECK(Outcome(posix_fallocate(file.get(), 0, 500'000)) == 0);
  model.resize(500'000);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "Allocation may keep the size") {
  CHECK(Allocate(FALLOC_FL_KEEP_SIZE, 200'000, 900'000) == 0);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "A punched hole reads as zeros, aligned or not") {
  for (const auto& [offset, length] :
       {std::pair<size_t, size_t>{8192, 65536}, {100'001, 1}, {150'003, 33'333}, {0, 4096}}) {
    CHECK(Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                   static_cast<off_t>(length)) == 0);
    Zero(offset, length);
    CheckContent();
  }
}

TEST_CASE_METHOD(FileOfData, "A hole over the end of the file does not move the end") {
  CHECK(Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 299'000, 100'000) == 0);
  Zero(299'000, 1000);
  CHECK(Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 400'000, 100'000) == 0);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "A punched hole is found and takes no blocks") {
  const auto blocks = [this] {  // st_blocks is brought up to date when the file is closed
    Descriptor(Path("file"), O_RDWR).Close();
    return StatOf(Path("file")).st_blocks;
  };
  const auto before = blocks();
  REQUIRE(Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536, 131072) == 0);
  CHECK(lseek(file.get(), 0, SEEK_HOLE) == 65536);
  CHECK(lseek(file.get(), 65536, SEEK_DATA) == 65536 + 131072);
  CHECK(before - blocks() >= 131072 / 512 - 16);
}

TEST_CASE_METHOD(FileOfData, "Punching a hole without FALLOC_FL_KEEP_SIZE is refused") {
  CHECK(Allocate(FALLOC_FL_PUNCH_HOLE, 0, 4096) == EOPNOTSUPP);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "Zeroing a range may let the file grow, or keep its size") {
  CHECK(Allocate(FALLOC_FL_ZERO_RANGE, 12'345, 54'321) == 0);
  Zero(12'345, 54'321);
  CheckContent();
  CHECK(Allocate(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 280'000, 100'000) == 0);
  Zero(280'000, 20'000);
  CheckContent();
  CHECK(Allocate(FALLOC_FL_ZERO_RANGE, 290'000, 60'000) == 0);
  Zero(290'000, 60'000);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "Collapsing and inserting ranges is refused", "[siltfs]") {
  CHECK(Allocate(FALLOC_FL_COLLAPSE_RANGE, 4096, 4096) == EOPNOTSUPP);
  CHECK(Allocate(FALLOC_FL_INSERT_RANGE, 4096, 4096) == EOPNOTSUPP);
  CheckContent();
}

TEST_CASE_METHOD(FileOfData, "Invalid arguments of fallocate are refused") {
  CHECK(Allocate(0, 0, 0) == EINVAL);
  CHECK(Allocate(0, -1, 10) == EINVAL);
  CHECK(Allocate(0, 0, -10) == EINVAL);
  CHECK(Allocate(0, INT64_MAX - 100, 4096) == EFBIG);
  const Descriptor reader(Path("file"), O_RDONLY);
  CHECK(Outcome(fallocate(reader.get(), 0, 0, 4096)) == EBADF);
  CheckContent();
}

}  // namespace
}  // namespace siltfs::testing
