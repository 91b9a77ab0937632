// The sizes of blocks: the store's block size, or larger while the workers have little to compress.
#include <algorithm>
#include <vector>

#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kChunk = 2048;
constexpr uint32_t kBlock = 16U << 10;
constexpr uint32_t kIdleBlock = 64U << 10;

StoreSettings Growing() {
  StoreSettings settings;
  settings.segment_bytes = 2U << 20;
  settings.block_plain_bytes = kBlock;
  settings.idle_block_plain_bytes = kIdleBlock;
  settings.pipeline_bytes = 1U << 20;
  settings.worker_threads = 1;
  return settings;
}

// The uncompressed bytes of each block of the kind.
std::vector<uint64_t> Sizes(StoreUnderTest& store, SegmentKind kind = SegmentKind::kData) {
  std::vector<uint64_t> sizes;
  for (const FoundBlock& block : AllBlocks(store)) {
    if (block.kind == kind) sizes.push_back(block.head.plain_bytes);
  }
  return sizes;
}

TEST_CASE("a block grows while little is queued, and is closed by a commit") {
  StoreUnderTest store(Growing());
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 3, kChunk);
  auto early = store.chunks().Get(all.names[1], kChunk);
  REQUIRE_OK(early);
  all.Append(PutMany(store.chunks(), 100, 45, kChunk));
  store.Commit();
  CHECK(Sizes(store) == std::vector<uint64_t>{kIdleBlock, kIdleBlock / 2});
  // The bytes that Get returned before the block grew are in the block's old buffer, and still
  // right.
  CHECK(std::equal(early->bytes.begin(), early->bytes.end(), all.chunks[1].begin(),
                   all.chunks[1].end()));
  RequireAll(store.chunks(), all);
  store.Reopen();
  RequireAll(store.chunks(), all);
}

TEST_CASE("a block does not grow while the pipeline holds a large block for each worker") {
  StoreUnderTest store(Growing());
  store.Open();
  store.index().HoldPuts();
  PutChunks all = PutMany(store.chunks(), 1, 64, kChunk);
  all.Append(PutMany(store.chunks(), 100, 24, kChunk));
  store.index().LetPutsGo();
  store.Commit();
  CHECK(Sizes(store) == std::vector<uint64_t>{kIdleBlock, kIdleBlock, kBlock, kBlock, kBlock});
  RequireAll(store.chunks(), all);
}

TEST_CASE("no block grows if growth is off") {
  StoreSettings settings = Growing();
  settings.idle_block_plain_bytes = 0;
  StoreUnderTest store(settings);
  store.Open();
  PutMany(store.chunks(), 1, 16, kChunk);
  store.Commit();
  CHECK(Sizes(store) == std::vector<uint64_t>{kBlock, kBlock});
}

}  // namespace
}  // namespace siltfs::testing
