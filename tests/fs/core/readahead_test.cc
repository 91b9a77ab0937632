// Large files that are read in order through the file system. Readahead does not change the bytes
// that a read returns, even if the file changes at the same time. Blocks are found without reading
// tables again.
#include <algorithm>

#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kPiece = 128u << 10;

struct Fixture {
  StoreFixture store;

  // Writes a file, and reopens the store so that nothing of the file is in memory.
  InodeNumber Cold(std::string_view name, const Bytes& data) {
    store.Open();
    const InodeNumber inode = WriteLargeFile(store.fs(), name, data);
    store.Reopen();
    return inode;
  }
  // Requires that the file's bytes from `offset` are those of `expected`.
  void RequireSame(InodeNumber inode, uint64_t offset, size_t size, const Bytes& expected) {
    Bytes out(size);
    auto count = store.fs().Read(inode, offset, out);
    REQUIRE_OK(count);
    REQUIRE(offset + *count <= expected.size());
    REQUIRE(std::equal(out.begin(), out.begin() + static_cast<ptrdiff_t>(*count),
                       expected.begin() + static_cast<ptrdiff_t>(offset)));
  }
};

TEST_CASE_METHOD(Fixture, "a large file is read from flash once, and its tables once per segment") {
  const Bytes data = RandomBytes(1, 40u << 20);
  const InodeNumber inode = Cold("a", data);
  const uint64_t before = store.env().Count(FaultEnv::Call::kRead, ".seg");
  for (size_t at = 0; at < data.size(); at += kPiece) RequireSame(inode, at, kPiece, data);
  // A block of 128 KiB takes one read in a sealed segment (32 MiB), and two in the open segment
  // after it. Footer parts, tables, trailers and nodes are read for many blocks at once.
  const uint64_t reads = store.env().Count(FaultEnv::Call::kRead, ".seg") - before;
  UNSCOPED_INFO(reads << " reads");
  CHECK(reads < data.size() / kPiece * 3 / 2);
}

TEST_CASE_METHOD(Fixture, "a file truncated, changed or removed while it is read reads as it is") {
  Bytes data = RandomBytes(2, 8u << 20);
  const InodeNumber inode = Cold("a", data);
  REQUIRE_OK(store.fs().OpenFile(inode, false));
  size_t at = 0;
  for (; at < 1u << 20; at += kPiece) RequireSame(inode, at, kPiece, data);
  SECTION("truncated") {
    AttributeChange change;
    change.size = 4u << 20;
    REQUIRE_OK(store.fs().SetAttributes(inode, change));
    data.resize(4u << 20);
  }
  SECTION("changed") {
    const Bytes patch = RandomBytes(3, 300'000);
    REQUIRE_OK(store.fs().Write(inode, 3'000'000, patch));
    std::copy(patch.begin(), patch.end(), data.begin() + 3'000'000);
  }
  SECTION("removed") { REQUIRE_OK(store.fs().Unlink(kRootInode, "a")); }
  for (; at < data.size(); at += kPiece) RequireSame(inode, at, kPiece, data);
  store.fs().ReleaseFile(inode);
}

TEST_CASE_METHOD(Fixture, "a store can be closed during the readahead of a file") {
  const Bytes data = RandomBytes(4, 4u << 20);
  const InodeNumber inode = Cold("a", data);
  for (int round = 0; round < 6; ++round) {
    for (size_t at = 0; at < (4 + static_cast<size_t>(round)) * kPiece; at += kPiece)
      RequireSame(inode, at, kPiece, data);
    store.Close();
    store.Open(round % 2 == 0);
  }
}

}  // namespace
}  // namespace siltfs::testing
