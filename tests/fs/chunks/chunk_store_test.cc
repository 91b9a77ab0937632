// A chunk store without failures: every chunk that was put can be read again, and is stored once,
// whatever happens in between.
#include "fs/chunks/chunk_store.h"

#include <array>
#include <set>
#include <thread>

#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

StoreSettings WithIndex(TestIndex index) {
  StoreSettings settings;
  settings.index = index;
  return settings;
}

// Commits, so that all chunks are appended, and returns the totals.
ChunkStoreTotals CommittedTotals(StoreUnderTest& store) {
  store.Commit();
  return store.chunks().totals();
}

uint64_t SegmentFileBytes(StoreUnderTest& store) {
  uint64_t bytes = 0;
  const auto listing = ListSegments(store.env(), store.path());
  REQUIRE_OK(listing);
  for (const SegmentId id : listing->ids) {
    const auto info = store.env().GetFileInfo(SegmentPath(store.path(), id));
    REQUIRE_OK(info);
    bytes += info->size;
  }
  return bytes;
}

}  // namespace

TEST_CASE("chunks come back at once, after a commit, after a remount and after a crash") {
  StoreUnderTest store(WithIndex(GENERATE(TestIndex::kMap, TestIndex::kSilt)));
  store.Open();
  PutChunks all;
  for (uint64_t round = 0; round < 5; ++round) {
    // Some chunks are in the open block, some are pending, and some are in open or sealed segments.
    all.Append(PutMany(store.chunks(), 1000 * round, 90));
    RequireAll(store.chunks(), all);
  }
  store.Commit();
  RequireAll(store.chunks(), all);
  store.Reopen();
  RequireAll(store.chunks(), all);
  PutChunks more = PutMany(store.chunks(), 9000, 50);
  all.Append(more);
  store.Commit();
  store.Crash();
  store.Open();
  RequireAll(store.chunks(), all);
  CHECK(store.findings().empty());
}

TEST_CASE("chunks of every length come back, down to a byte and up to the largest") {
  StoreSettings settings;
  settings.block_plain_bytes = 1u << 20;
  settings.chunk_max = 1536u << 10;  // an open block and one more chunk exceed what a block holds
  settings.pipeline_bytes = 4u << 20;
  StoreUnderTest store(settings);
  store.Open();
  PutChunks all;
  for (size_t size : {1, 2, 63, 4096, 65535, 1023 << 10, 1536 << 10, 1, 1000 << 10, 1500 << 10}) {
    PutChunks one;
    one.chunks.push_back(RandomChunk(size + all.chunks.size(), size));
    REQUIRE_OK(TryPut(store.chunks(), one));
    all.Append(one);
  }
  store.Commit();
  RequireAll(store.chunks(), all);
  store.Reopen();
  RequireAll(store.chunks(), all);
}

TEST_CASE("a chunk of impossible length is refused, and later puts succeed") {
  StoreUnderTest store;
  store.Open();
  const Bytes good = RandomChunk(1);
  const Bytes long_one = RandomChunk(2, (64u << 10) + 1);
  for (ByteView bad : {ByteView(), ByteView(long_one)}) {
    const std::array<ByteView, 2> both = {good, bad};
    std::array<ChunkName, 2> names;
    REQUIRE_CODE(store.chunks().Put(both, names), kInvalidArgument);
    REQUIRE_CODE(store.chunks().PutNode(bad), kInvalidArgument);
  }
  REQUIRE(ComesBack(store.chunks(), PutOne(store.chunks(), good), good));
  store.Commit();
}

TEST_CASE("a chunk is stored once, however often and whenever it is put") {
  StoreSettings settings = WithIndex(GENERATE(TestIndex::kMap, TestIndex::kSilt));
  settings.segment_bytes = 1u << 20;  // no segment is sealed, which would add a footer
  StoreUnderTest store(settings);
  store.Open();
  const PutChunks first = PutMany(store.chunks(), 0, 60);
  const ChunkStoreTotals once = CommittedTotals(store);
  REQUIRE(once.chunks == 60);
  REQUIRE(once.plain_bytes == 60 * 2000);

  auto put_again = [&] {
    PutChunks again = first;
    REQUIRE_OK(TryPut(store.chunks(), again));
    REQUIRE(again.names == first.names);
    for (size_t i = 0; i < 5; ++i) {
      REQUIRE(PutOne(store.chunks(), first.chunks[i]) == first.names[i]);
    }
    const ChunkStoreTotals now = CommittedTotals(store);
    REQUIRE(now.chunks == once.chunks);
    REQUIRE(now.plain_bytes == once.plain_bytes);
    return now.stored_bytes;
  };
  SECTION("after a commit") { REQUIRE(put_again() == once.stored_bytes); }
  SECTION("after a remount") {
    store.Reopen();
    REQUIRE(put_again() == once.stored_bytes);
  }
  SECTION("after a crash") {
    store.Crash();
    store.Open();
    const uint64_t sealed_bytes = store.chunks().totals().stored_bytes;  // includes a footer
    REQUIRE(put_again() == sealed_bytes);
  }
  SECTION("after the index was lost") {
    store.Close();
    store.RemoveIndex();
    store.Open();
    REQUIRE(put_again() == once.stored_bytes);
  }
  SECTION("and new ones beside it are stored") {
    PutMany(store.chunks(), 500, 7);
    REQUIRE(CommittedTotals(store).chunks == 67);
  }
}

TEST_CASE("a pending chunk is a duplicate already") {
  StoreUnderTest store;
  store.Open();
  const Bytes chunk = RandomChunk(1);
  const ChunkName name = PutOne(store.chunks(), chunk);  // stays in the open block
  for (int i = 0; i < 20; ++i) REQUIRE(PutOne(store.chunks(), chunk) == name);
  REQUIRE(CommittedTotals(store).chunks == 1);
}

TEST_CASE("a chunk that stands in a batch twice is stored once, however far apart") {
  StoreUnderTest store;
  store.Open();
  PutChunks batch;
  const size_t distance = GENERATE(1, 10, 200, 5000);
  const Bytes chunk = RandomChunk(1, 300);
  batch.chunks.push_back(chunk);
  for (size_t i = 1; i < distance; ++i) batch.chunks.push_back(RandomChunk(100 + i, 300));
  batch.chunks.push_back(chunk);
  REQUIRE_OK(TryPut(store.chunks(), batch));
  REQUIRE(batch.names.front() == batch.names.back());
  REQUIRE(CommittedTotals(store).chunks == distance);
  REQUIRE(CountCopies(store, batch.names[0]) == 1);
}

TEST_CASE("recipe nodes lie in segments of their own, uncompressed") {
  StoreUnderTest store;
  store.Open();
  std::vector<std::pair<ChunkName, Bytes>> nodes;
  PutChunks data;
  for (uint64_t i = 0; i < 40; ++i) {
    nodes.emplace_back(ChunkName{}, DullChunk(1000 + i, 3000));
    auto name = store.chunks().PutNode(nodes.back().second);
    REQUIRE_OK(name);
    nodes.back().first = *name;
    PutChunks one;
    one.chunks.push_back(DullChunk(i, 3000));
    REQUIRE_OK(TryPut(store.chunks(), one));
    data.Append(one);
  }
  const ChunkStoreTotals totals = CommittedTotals(store);
  REQUIRE(totals.chunks == 40);  // nodes are not counted
  REQUIRE(totals.plain_bytes == 40 * 3000);

  auto require_nodes = [&] {
    for (const auto& [name, bytes] : nodes) {
      auto node = store.chunks().GetNode(name, static_cast<uint32_t>(bytes.size()));
      REQUIRE_OK(node);
      REQUIRE(**node == bytes);
    }
  };
  require_nodes();
  RequireAll(store.chunks(), data);
  std::set<ChunkName> node_names;
  for (const auto& [name, bytes] : nodes) node_names.insert(name);
  size_t nodes_found = 0;
  for (const FoundBlock& block : AllBlocks(store)) {
    const bool of_nodes = block.kind == SegmentKind::kRecipeNodes;
    REQUIRE(block.head.codec == (of_nodes ? BlockCodecId::kNone : BlockCodecId::kZstd));
    for (const ChunkRecord& record : block.head.records) {
      REQUIRE(node_names.contains(record.name) == of_nodes);
      nodes_found += of_nodes ? 1 : 0;
    }
  }
  REQUIRE(nodes_found == nodes.size());
  for (const auto& [id, record] : store.committed().segments) REQUIRE(record.kind <= 1);

  // A node put again is a duplicate, before and after a remount.
  REQUIRE_OK(store.chunks().PutNode(nodes[3].second));
  store.Reopen();
  require_nodes();
  REQUIRE_OK(store.chunks().PutNode(nodes[4].second));
  store.Commit();
  REQUIRE(CountCopies(store, nodes[3].first) == 1);
  REQUIRE(CountCopies(store, nodes[4].first) == 1);
}

TEST_CASE("incompressible chunks are stored uncompressed, and cost little more than themselves") {
  StoreUnderTest store;
  store.Open();
  PutMany(store.chunks(), 0, 30, 8000);
  const ChunkStoreTotals totals = CommittedTotals(store);
  REQUIRE(totals.stored_bytes > totals.plain_bytes);
  REQUIRE(totals.stored_bytes < totals.plain_bytes + totals.plain_bytes / 50);
  for (const FoundBlock& block : AllBlocks(store)) REQUIRE(block.head.codec == BlockCodecId::kNone);
}

TEST_CASE("a full segment is sealed while the next one is written") {
  StoreUnderTest store;
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 400);  // 800 KB into segments of 64 KiB
  store.Reopen();                                         // waits for the seals under way
  store.Close();
  REQUIRE(store.committed().segments.size() >= 10);
  const BlockCodec codec;
  size_t sealed = 0;
  for (const auto& [id, record] : store.committed().segments) {
    auto reader =
        SegmentReader::Open(store.env(), store.path(), {store.identity().uuid, id}, codec);
    REQUIRE_OK(reader);
    auto is_sealed = (*reader)->IsSealed();
    REQUIRE_OK(is_sealed);
    REQUIRE(*is_sealed == record.sealed);
    auto size = (*reader)->file().Size();
    REQUIRE_OK(size);
    REQUIRE(*size == record.length);
    REQUIRE(record.length <= (64u << 10) + (16u << 10) + 4096);
    sealed += record.sealed ? 1 : 0;
  }
  // One segment may be open, and two may wait to be sealed.
  REQUIRE(sealed + 3 >= store.committed().segments.size());
  store.Open();
  RequireAll(store.chunks(), all);
}

TEST_CASE("totals are exact: over remounts, crashes and lost indexes") {
  StoreUnderTest store(WithIndex(GENERATE(TestIndex::kMap, TestIndex::kSilt)));
  store.Open();
  uint64_t chunks = 0;
  for (uint64_t round = 0; round < 6; ++round) {
    PutMany(store.chunks(), 1000 * round, 50 + round);
    chunks += 50 + round;
    const ChunkStoreTotals totals = CommittedTotals(store);
    REQUIRE(totals.chunks == chunks);
    REQUIRE(totals.plain_bytes == chunks * 2000);
    if (round % 3 == 0) {
      store.Reopen();
    } else if (round % 3 == 1) {
      store.Crash();
      store.Open();
    } else {
      store.Close();
      store.RemoveIndex();
      store.Open();
    }
    const ChunkStoreTotals after = store.chunks().totals();
    REQUIRE(after.chunks == chunks);
    REQUIRE(after.plain_bytes == chunks * 2000);
    // While a thread seals a full segment, one number may change before the other. So compare them
    // until they are equal.
    for (int looks = 0; looks < 1'000'000; ++looks) {
      if (store.chunks().totals().stored_bytes == SegmentFileBytes(store)) break;
      std::this_thread::yield();
    }
    REQUIRE(store.chunks().totals().stored_bytes == SegmentFileBytes(store));
  }
}

TEST_CASE("a store that is open read-only returns all chunks and accepts none") {
  StoreUnderTest store(WithIndex(GENERATE(TestIndex::kMap, TestIndex::kSilt)));
  store.Open();
  PutChunks all = PutMany(store.chunks(), 0, 100);
  const bool clean = GENERATE(true, false);
  if (clean) {
    store.Close();
  } else {
    store.Commit();
    PutMany(store.chunks(), 5000, 100);  // not committed: a torn tail
    store.Crash({.unsynced = CrashPolicy::Unsynced::kPrefix, .seed = 5});
  }
  const uint64_t changes = store.env().Calls(SimCall::kMutating);
  store.Open(/*read_only=*/true);
  RequireAll(store.chunks(), all);
  const Bytes chunk = RandomChunk(1);
  const ByteView view(chunk);
  ChunkName name;
  REQUIRE_CODE(store.chunks().Put({&view, 1}, {&name, 1}), kReadOnly);
  REQUIRE_CODE(store.chunks().PutNode(view), kReadOnly);
  std::vector<Mutation> extra;
  REQUIRE_CODE(store.chunks().PrepareCommit(1, extra), kReadOnly);
  REQUIRE(store.chunks().totals().chunks == 100);
  store.Kill();
  REQUIRE(store.env().Calls(SimCall::kMutating) == changes);
}

TEST_CASE("a chunk that was never put is not found") {
  StoreUnderTest store;
  store.Open();
  PutMany(store.chunks(), 0, 100);
  store.Commit();
  ChunkName name;
  name.bytes.fill(7);
  REQUIRE_CODE(store.chunks().Get(name, 2000), kCorruption);
  // The right name with a wrong length is another chunk.
  const PutChunks again = PutMany(store.chunks(), 0, 1);
  REQUIRE_CODE(store.chunks().Get(again.names[0], 1999), kCorruption);
}

}  // namespace siltfs::testing
