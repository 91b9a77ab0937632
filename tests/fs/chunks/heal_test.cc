// Damaged chunks that are put again: only their own bytes heal them.
#include "chunker/chunk_namer.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {
namespace {

// Keeps no decoded blocks, so that reads see the device.
StoreSettings WithoutCache(TestIndex index = TestIndex::kMap) {
  StoreSettings settings;
  settings.index = index;
  settings.block_cache_bytes = 0;
  return settings;
}

enum class Rot : uint8_t { kPayload, kHead };

FoundBlock BlockAt(StoreUnderTest& store, const ChunkName& name) {
  const auto place = Find(store, name);
  REQUIRE(place);
  for (FoundBlock& block : AllBlocks(store)) {
    if (block.segment == place->segment && block.offset == place->block_offset)
      return std::move(block);
  }
  FAIL("no block");
  return {};
}

// Damages the block that holds the chunk, so that all chunks of the block are lost. Returns the
// block.
FoundBlock Damage(StoreUnderTest& store, const ChunkName& name, Rot rot = Rot::kPayload) {
  FoundBlock block = BlockAt(store, name);
  FlipByte(store, SegmentPath(store.path(), block.segment),
           block.offset + (rot == Rot::kHead ? 20 : block.head.head_bytes() + 5));
  return block;
}

bool IsIn(const FoundBlock& block, const ChunkName& name) {
  for (const ChunkRecord& record : block.head.records) {
    if (record.name == name) return true;
  }
  return false;
}

Status GetOf(StoreUnderTest& store, const ChunkName& name, ByteView chunk) {
  return store.chunks().Get(name, static_cast<uint32_t>(chunk.size())).status();
}

}  // namespace

TEST_CASE("exactly the chunks of the damaged block are lost, and putting them again heals them") {
  const Rot rot = GENERATE(Rot::kPayload, Rot::kHead);
  StoreUnderTest store(WithoutCache(GENERATE(TestIndex::kMap, TestIndex::kSilt)));
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 300);
  store.Commit();
  const FoundBlock block = Damage(store, all.names[20], rot);
  size_t lost = 0;
  for (size_t i = 0; i < all.names.size(); ++i) {
    const Status got = GetOf(store, all.names[i], all.chunks[i]);
    REQUIRE(got.Is(StatusCode::kCorruption) == IsIn(block, all.names[i]));
    lost += got.ok() ? 0 : 1;
  }
  REQUIRE(lost == block.head.records.size());
  REQUIRE(store.chunks().totals().damaged_chunks == lost);

  // The search has loaded all lost chunks into the footer cache, but Put must not take them as
  // duplicates.
  const uint64_t chunks = store.chunks().totals().chunks;
  PutChunks again;
  again.chunks = all.chunks;
  REQUIRE_OK(TryPut(store.chunks(), again));
  REQUIRE(again.names == all.names);
  REQUIRE(store.chunks().totals().sha1_collisions == 0);
  store.Commit();
  REQUIRE(store.chunks().totals().chunks == chunks + lost);
  RequireAll(store.chunks(), all);

  SECTION("for this mount") {}
  SECTION("for the next") { store.Reopen(); }
  SECTION("over a power cut") {
    store.Crash();
    store.Open();
  }
  SECTION("over the loss of the index") {
    store.Crash();
    store.RemoveIndex();
    store.Open();
  }
  RequireAll(store.chunks(), all);
  // Healed chunks are not stored again.
  REQUIRE_OK(TryPut(store.chunks(), again));
  REQUIRE(again.names == all.names);
  REQUIRE(CountCopies(store, all.names[20]) <= 2);
}

TEST_CASE("lost chunks are searched for once, in all segments, and not again by later reads") {
  StoreUnderTest store(WithoutCache());
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 600);
  store.Reopen();
  const FoundBlock block = Damage(store, all.names[20]);
  const auto read = [&store] {
    return store.env().Calls(SimCall::kList) + store.env().Calls(SimCall::kRead);
  };
  const uint64_t before = read();
  REQUIRE_CODE(GetOf(store, all.names[20], all.chunks[20]), kCorruption);
  const uint64_t first = read() - before;
  REQUIRE(first > 2 * store.committed().segments.size());
  size_t asked = 0;
  for (size_t i = 0; i < all.names.size(); ++i) {
    if (!IsIn(block, all.names[i])) continue;
    ++asked;
    REQUIRE_CODE(GetOf(store, all.names[i], all.chunks[i]), kCorruption);
  }
  REQUIRE(asked > 1);
  // Each read looks only at the damaged place.
  REQUIRE(read() - before - first < asked * store.committed().segments.size());
  const uint64_t lists = store.env().Calls(SimCall::kList);
  REQUIRE_CODE(GetOf(store, all.names[20], all.chunks[20]), kCorruption);
  REQUIRE(store.env().Calls(SimCall::kList) == lists);

  // A chunk that is put again is found.
  PutChunks again;
  again.chunks = all.chunks;
  REQUIRE_OK(TryPut(store.chunks(), again));
  RequireAll(store.chunks(), all);
}

TEST_CASE("known damage heals in the same mount and in later ones") {
  StoreUnderTest store(WithoutCache());
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 100);
  store.Reopen();
  const FoundBlock block = Damage(store, all.names[3]);
  REQUIRE_CODE(GetOf(store, all.names[3], all.chunks[3]), kCorruption);
  REQUIRE(store.committed().damage.empty());
  SECTION("after an unmount") { store.Reopen(); }
  SECTION("after a commit, and a crash") {
    store.Commit();
    store.Crash();
    store.Open();
  }
  REQUIRE(store.committed().damage.size() == 1);
  REQUIRE(store.chunks().totals().damaged_blocks == 1);
  REQUIRE(PutOne(store.chunks(), all.chunks[3]) == all.names[3]);
  REQUIRE(ComesBack(store.chunks(), all.names[3], all.chunks[3]));
  // Other chunks of the block were not put again.
  for (size_t i = 0; i < all.names.size(); ++i) {
    if (i != 3 && IsIn(block, all.names[i]))
      REQUIRE_CODE(GetOf(store, all.names[i], all.chunks[i]), kCorruption);
  }
}

TEST_CASE("a chunk that was put a moment ago, and is damaged already, is no duplicate") {
  StoreUnderTest store(WithoutCache());
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 40);
  store.Commit();
  Damage(store, all.names[3]);
  REQUIRE_CODE(GetOf(store, all.names[3], all.chunks[3]), kCorruption);
  REQUIRE(PutOne(store.chunks(), all.chunks[3]) == all.names[3]);
  REQUIRE(ComesBack(store.chunks(), all.names[3], all.chunks[3]));
}

TEST_CASE("a put that meets damage by itself heals it") {
  StoreUnderTest store(WithoutCache());
  store.Open();
  PutChunks all = PutMany(store.chunks(), 1, 100);
  store.Commit();
  store.Crash();
  store.Open();  // sealed now
  const FoundBlock block = Damage(store, all.names[3]);
  // Damage the footer, so that Put has to ask the chunk table.
  const std::string path = SegmentPath(store.path(), block.segment);
  const auto info = store.env().GetFileInfo(path);
  REQUIRE_OK(info);
  FlipByte(store, path, info->size - 20);
  REQUIRE(PutOne(store.chunks(), all.chunks[3]) == all.names[3]);
  REQUIRE(ComesBack(store.chunks(), all.names[3], all.chunks[3]));
}

TEST_CASE("a damaged recipe node is healed by the same node") {
  StoreUnderTest store(WithoutCache());
  store.Open();
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 10; ++i) {
    const auto name = store.chunks().PutNode(RandomChunk(i));
    REQUIRE_OK(name);
    names.push_back(*name);
  }
  store.Reopen();
  Damage(store, names[4]);
  REQUIRE_CODE(store.chunks().GetNode(names[4], 2000), kCorruption);
  const auto again = store.chunks().PutNode(RandomChunk(4));
  REQUIRE_OK(again);
  REQUIRE(*again == names[4]);
  REQUIRE_OK(store.chunks().GetNode(names[4], 2000));
  store.Reopen();
  REQUIRE_OK(store.chunks().GetNode(names[4], 2000));
}

TEST_CASE("only its own bytes heal a damaged chunk, not other bytes with its name") {
  const bool swapped = GENERATE(false, true);
  const Bytes one = FromHex(swapped ? kShattered2 : kShattered1);
  const Bytes other = FromHex(swapped ? kShattered1 : kShattered2);
  const Rot rot = GENERATE(Rot::kPayload, Rot::kHead);
  StoreUnderTest store(WithoutCache());
  store.Open();
  const ChunkName name = PutOne(store.chunks(), one);
  PutChunks beside = PutMany(store.chunks(), 1, 100);
  ChunkName other_name;
  const bool both = GENERATE(false, true);
  if (both) other_name = PutOne(store.chunks(), other);
  store.Commit();
  store.Crash();
  store.Open();  // sealed now
  const FoundBlock block = Damage(store, name, rot);
  REQUIRE_CODE(GetOf(store, name, one), kCorruption);
  store.Commit();

  SECTION("in this mount") {}
  SECTION("in the next, with an index that lacks the block without a head") {
    store.Crash();
    store.RemoveIndex();
    store.Open();
  }
  SECTION("in the next, with a segment that has lost its footer, too") {
    const std::string path = SegmentPath(store.path(), block.segment);
    const auto info = store.env().GetFileInfo(path);
    REQUIRE_OK(info);
    store.Crash();
    FlipByte(store, path, info->size - 20);
    store.RemoveIndex();
    store.Open();
  }
  const ChunkName stored = PutOne(store.chunks(), other);
  REQUIRE(stored != name);
  if (both) REQUIRE(stored == other_name);
  REQUIRE(store.chunks().totals().sha1_collisions == 1);
  REQUIRE(ComesBack(store.chunks(), stored, other));
  REQUIRE_CODE(GetOf(store, name, one), kCorruption);

  REQUIRE(PutOne(store.chunks(), one) == name);
  REQUIRE(ComesBack(store.chunks(), name, one));
  REQUIRE(ComesBack(store.chunks(), stored, other));
  store.Crash();
  store.RemoveIndex();
  store.Open();
  REQUIRE(PutOne(store.chunks(), other) == stored);
  REQUIRE(PutOne(store.chunks(), one) == name);
  REQUIRE(ComesBack(store.chunks(), name, one));
  REQUIRE(ComesBack(store.chunks(), stored, other));
}

}  // namespace siltfs::testing
