// fallocate, lseek and copy_file_range as seen by callers of the core.
#include <optional>

#include "fs/interface/store_maintenance.h"
#include "tests/fs/core/recount_store.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kMiB = 1u << 20;

struct Fixture {
  Fixture() { store.Open(); }
  FileSystem& fs() { return store.fs(); }
  InodeNumber File(std::string_view name, ByteView data) {
    const InodeNumber inode = WriteLargeFile(fs(), name, data);
    REQUIRE_OK(fs().OpenFile(inode, false));
    return inode;
  }
  uint64_t SizeOf(InodeNumber inode) { return fs().GetAttributes(inode)->size; }
  std::optional<uint64_t> Seek(InodeNumber inode, uint64_t offset, SeekTarget target) {
    auto found = fs().Seek(inode, offset, target);
    REQUIRE_OK(found);
    return *found;
  }
  StoreFixture store;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "allocating makes a file longer, unless its size is to be kept") {
  const InodeNumber inode = File("a", RandomBytes(1, 1000));
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kReserve, 5'000, 5'000, true));
  CHECK(SizeOf(inode) == 1000);
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kReserve, 5'000, 5'000, false));
  CHECK(SizeOf(inode) == 10'000);
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kReserve, 0, 5'000, false));
  CHECK(SizeOf(inode) == 10'000);
  Bytes expected = RandomBytes(1, 1000);
  expected.resize(10'000);
  CHECK((*ReadFile(fs(), inode) == expected));
}

TEST_CASE_METHOD(Fixture, "a zeroed range reads as zeros and takes no space") {
  Bytes expected = RandomBytes(2, 2 * kMiB);
  const InodeNumber inode = File("a", expected);
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kZero, 1000, kMiB, true));
  std::fill(expected.begin() + 1000, expected.begin() + 1000 + kMiB, uint8_t{0});
  CHECK((*ReadFile(fs(), inode) == expected));
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kZero, 2 * kMiB - 5, 100, true));
  CHECK(SizeOf(inode) == 2 * kMiB);
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kZero, 2 * kMiB - 5, 100, false));
  CHECK(SizeOf(inode) == 2 * kMiB + 95);
  std::fill(expected.end() - 5, expected.end(), uint8_t{0});
  expected.resize(2 * kMiB + 95);
  fs().ReleaseFile(inode);
  CHECK((*ReadFile(fs(), inode) == expected));
  CHECK(fs().GetAttributes(inode)->allocated_bytes == kMiB - 5);
  store.Reopen();
  CHECK((*ReadFile(fs(), inode) == expected));
}

TEST_CASE_METHOD(Fixture, "an impossible allocation is refused") {
  const InodeNumber inode = File("a", RandomBytes(3, 10));
  const InodeNumber directory = MakeDir(fs(), kRootInode, "d");
  const auto reserve = AllocateMode::kReserve;
  REQUIRE_CODE(fs().Allocate(inode, reserve, 0, 0, false), kInvalidArgument);
  REQUIRE_CODE(fs().Allocate(inode, reserve, kMaxFileBytes, 1, false), kFileTooLarge);
  REQUIRE_CODE(fs().Allocate(inode, reserve, ~uint64_t{0}, 5, false), kFileTooLarge);
  REQUIRE_CODE(fs().Allocate(inode, reserve, 0, kMaxFileBytes, true), kNoSpace);
  REQUIRE_CODE(fs().Allocate(directory, reserve, 0, 10, false), kIsADirectory);
  REQUIRE_OK(fs().Allocate(inode, AllocateMode::kZero, 0, kMaxFileBytes, false));
  CHECK(SizeOf(inode) == kMaxFileBytes);
}

TEST_CASE_METHOD(Fixture, "data and holes are found as by lseek") {
  const InodeNumber inode = File("a", RandomBytes(4, kMiB));
  REQUIRE_OK(fs().Write(inode, 3 * kMiB, RandomBytes(5, kMiB)));
  AttributeChange longer;
  longer.size = 5 * kMiB;
  REQUIRE_OK(fs().SetAttributes(inode, longer));
  CHECK(Seek(inode, 0, SeekTarget::kData) == 0);
  CHECK(Seek(inode, 0, SeekTarget::kHole) == kMiB);
  CHECK(Seek(inode, kMiB, SeekTarget::kData) == 3 * kMiB);
  CHECK(Seek(inode, 3 * kMiB + 1, SeekTarget::kData) == 3 * kMiB + 1);
  CHECK(Seek(inode, 3 * kMiB + 1, SeekTarget::kHole) == 4 * kMiB);
  CHECK(Seek(inode, 4 * kMiB, SeekTarget::kData) == std::nullopt);
  CHECK(Seek(inode, 4 * kMiB, SeekTarget::kHole) == 4 * kMiB);
  CHECK(Seek(inode, 5 * kMiB, SeekTarget::kHole) == std::nullopt);
  CHECK(Seek(inode, 5 * kMiB, SeekTarget::kData) == std::nullopt);
  const InodeNumber full = File("b", RandomBytes(6, 1000));
  CHECK(Seek(full, 10, SeekTarget::kHole) == 1000);
  const InodeNumber directory = MakeDir(fs(), kRootInode, "d");
  REQUIRE_CODE(fs().Seek(directory, 0, SeekTarget::kData), kIsADirectory);
}

TEST_CASE_METHOD(Fixture, "a copy has the same bytes, stored once") {
  const Bytes content = RandomBytes(7, 8 * kMiB);
  const InodeNumber source = File("a", content);
  fs().ReleaseFile(source);
  REQUIRE_OK(fs().SyncAll());
  const uint64_t stored = fs().maintenance().GetStats()->stored_bytes;
  const InodeNumber target = File("b", {});
  auto copied = fs().CopyRange(source, 0, target, 0, ~uint64_t{0});
  REQUIRE_OK(copied);
  CHECK(*copied == content.size());
  fs().ReleaseFile(target);
  REQUIRE_OK(fs().SyncAll());
  CHECK((*ReadFile(fs(), target) == content));
  CHECK(fs().maintenance().GetStats()->stored_bytes == stored);
  CHECK(fs().maintenance().GetStats()->logical_bytes == 2 * content.size());
  // A later write to the target does not change the source.
  REQUIRE_OK(fs().OpenFile(target, false));
  REQUIRE_OK(fs().Write(target, 0, RandomBytes(8, 100)));
  fs().ReleaseFile(target);
  CHECK((*ReadFile(fs(), source) == content));
  store.Reopen();
  CHECK((*ReadFile(fs(), source) == content));
  CHECK(SizeOf(target) == content.size());
}

TEST_CASE_METHOD(Fixture, "a copy has the last written bytes, folded or not") {
  const InodeNumber source = File("a", RandomBytes(9, kMiB));
  REQUIRE_OK(fs().Write(source, 1234, RandomBytes(10, 5'000)));
  const InodeNumber target = File("b", RandomBytes(11, 3 * kMiB));
  REQUIRE_OK(fs().Write(target, 777, RandomBytes(12, 5'000)));
  Bytes expected = *ReadFile(fs(), target);
  const Bytes from = *ReadFile(fs(), source);
  for (const uint64_t length : {uint64_t{1000}, uint64_t{700'000}}) {
    auto copied = fs().CopyRange(source, 1000, target, 500, length);
    REQUIRE_OK(copied);
    REQUIRE(*copied == length);
    std::copy_n(from.begin() + 1000, length, expected.begin() + 500);
    CHECK((*ReadFile(fs(), target) == expected));
  }
  auto within = fs().CopyRange(target, 0, target, 2 * kMiB, kMiB);
  REQUIRE_OK(within);
  std::copy_n(Bytes(expected).begin(), kMiB, expected.begin() + 2 * kMiB);
  CHECK((*ReadFile(fs(), target) == expected));
}

TEST_CASE_METHOD(Fixture, "a copy ends where its source ends, and must not overlap its source") {
  const InodeNumber source = File("a", RandomBytes(13, 1000));
  const InodeNumber target = File("b", {});
  CHECK(*fs().CopyRange(source, 1000, target, 0, 10) == 0);
  CHECK(*fs().CopyRange(source, 5000, target, 0, 10) == 0);
  CHECK(*fs().CopyRange(source, 0, target, 0, 0) == 0);
  CHECK(*fs().CopyRange(source, 900, target, 50, 500) == 100);
  CHECK(SizeOf(target) == 150);
  REQUIRE_CODE(fs().CopyRange(source, 0, source, 500, 501), kInvalidArgument);
  REQUIRE_OK(fs().CopyRange(source, 0, source, 500, 500));
  REQUIRE_CODE(fs().CopyRange(source, 0, target, kMaxFileBytes - 10, 100), kFileTooLarge);
  REQUIRE_CODE(fs().CopyRange(source, 0, kRootInode, 0, 100), kIsADirectory);
  REQUIRE_CODE(fs().CopyRange(kRootInode, 0, target, 0, 100), kIsADirectory);
}

TEST_CASE_METHOD(Fixture, "copies of a source full of holes leave no overlay full of parts") {
  constexpr uint64_t kSize = 64 * 1024 - 2;
  const InodeNumber source = File("a", RandomBytes(14, kSize));
  for (uint64_t i = 1; i < kSize; i += 2)
    REQUIRE_OK(fs().Allocate(source, AllocateMode::kZero, i, 1, true));
  const InodeNumber target = File("b", RandomBytes(15, 4 * kMiB));
  Bytes expected = *ReadFile(fs(), target);
  const Bytes copied = *ReadFile(fs(), source);
  for (uint64_t k = 0; k < 4; ++k) {
    REQUIRE_OK(fs().Write(target, 4 * kMiB - 1, Bytes{uint8_t{5}}));  // the target is never folded
    REQUIRE_OK(fs().CopyRange(source, 0, target, k * 300'000, kSize));
    std::copy(copied.begin(), copied.end(), expected.begin() + static_cast<ptrdiff_t>(k * 300'000));
  }
  expected.back() = 5;
  CHECK((*ReadFile(fs(), target) == expected));
  REQUIRE_OK(fs().SyncAll());
  store.Crash();
  CHECK(RecountStore(store.path()).overlay_extents < 1000);
  store.Open();
  CHECK((*ReadFile(fs(), target) == expected));
  CHECK(store.findings().empty());
}

}  // namespace siltfs::testing
