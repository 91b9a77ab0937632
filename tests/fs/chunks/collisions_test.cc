// SHA-1 is broken: the chunks of both published collisions are put in every order and state, and
// must be read back as they were put.
#include "chunker/chunk_namer.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_footer.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {
namespace {

struct Collision {
  Bytes one;
  Bytes other;
};

// Numbers 0 and 1 are SHAttered with a common tail, in both orders. Numbers 2 and 3 are SHA-mbles,
// in both orders.
Collision CollisionNumber(int number) {
  Collision collision;
  if (number < 2) {
    collision = {FromHex(kShattered1), FromHex(kShattered2)};
    for (Bytes* bytes : {&collision.one, &collision.other}) {
      for (int i = 0; i < 1000; ++i) bytes->push_back(static_cast<uint8_t>(i));
    }
  } else {
    collision = {FromHex(kShambles1), FromHex(kShambles2)};
  }
  if (number % 2 == 1) std::swap(collision.one, collision.other);
  return collision;
}

struct Names {
  ChunkName one;
  ChunkName other;
};

void RequireBoth(StoreUnderTest& store, const Collision& collision, const Names& names) {
  REQUIRE(names.one != names.other);
  REQUIRE(ComesBack(store.chunks(), names.one, collision.one));
  REQUIRE(ComesBack(store.chunks(), names.other, collision.other));
}

// Puts both chunks again. Requires that both are duplicates under the same names, and that nothing
// is stored.
void RequireKnown(StoreUnderTest& store, const Collision& collision, const Names& names) {
  store.Commit();
  const uint64_t chunks = store.chunks().totals().chunks;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(PutOne(store.chunks(), collision.one) == names.one);
    REQUIRE(PutOne(store.chunks(), collision.other) == names.other);
  }
  PutChunks both;
  both.chunks = {collision.other, collision.one, collision.other};
  REQUIRE_OK(TryPut(store.chunks(), both));
  REQUIRE(both.names == std::vector<ChunkName>{names.other, names.one, names.other});
  store.Commit();
  REQUIRE(store.chunks().totals().chunks == chunks);
  REQUIRE(store.chunks().totals().sha1_collisions == 1);
  REQUIRE(store.committed().collisions == 1);
}

}  // namespace

TEST_CASE("the constants are collisions") {
  const Collision collision = CollisionNumber(GENERATE(range(0, 4)));
  auto namer = ChunkNamer::Create({});
  REQUIRE_OK(namer);
  REQUIRE(collision.one != collision.other);
  REQUIRE(collision.one.size() == collision.other.size());
  REQUIRE(namer->NameOf(collision.one) == namer->NameOf(collision.other));
}

TEST_CASE("both members of a collision come back, and are counted exactly once") {
  const Collision collision = CollisionNumber(GENERATE(range(0, 4)));
  StoreSettings settings;
  settings.index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  StoreUnderTest store(settings);
  store.Open();
  Names names;

  SECTION("the second while the first is pending") {
    names.one = PutOne(store.chunks(), collision.one);
    names.other = PutOne(store.chunks(), collision.other);
  }
  SECTION("in one batch, side by side") {
    PutChunks batch;
    batch.chunks = {collision.one, collision.other};
    REQUIRE_OK(TryPut(store.chunks(), batch));
    names = {batch.names[0], batch.names[1]};
  }
  SECTION("in one batch, far apart: the first is in a segment when the second's turn comes") {
    const size_t between = GENERATE(500, 6000);
    PutChunks batch;
    batch.chunks.push_back(collision.one);
    for (size_t i = 0; i < between; ++i) batch.chunks.push_back(RandomChunk(i, 200));
    batch.chunks.push_back(collision.other);
    REQUIRE_OK(TryPut(store.chunks(), batch));
    names = {batch.names.front(), batch.names.back()};
  }
  SECTION("the second after the first is durable") {
    names.one = PutOne(store.chunks(), collision.one);
    store.Commit();
    names.other = PutOne(store.chunks(), collision.other);
  }
  SECTION("the second after a remount") {
    names.one = PutOne(store.chunks(), collision.one);
    store.Reopen();
    names.other = PutOne(store.chunks(), collision.other);
  }
  SECTION("the second after a crash and with a new index") {
    names.one = PutOne(store.chunks(), collision.one);
    store.Commit();
    store.Crash();
    store.RemoveIndex();
    store.Open();
    names.other = PutOne(store.chunks(), collision.other);
  }
  RequireBoth(store, collision, names);
  REQUIRE(store.chunks().totals().sha1_collisions == 1);
  RequireKnown(store, collision, names);
  RequireBoth(store, collision, names);

  store.Reopen();
  RequireBoth(store, collision, names);
  RequireKnown(store, collision, names);

  // The chunk with the salted name is found again from the segments alone.
  store.Crash();
  store.RemoveIndex();
  store.Open();
  RequireBoth(store, collision, names);
  RequireKnown(store, collision, names);
  auto salted = [](const ChunkRecord& record) { return record.salt; };
  std::vector<uint8_t> salts;
  for (const FoundBlock& block : AllBlocks(store)) {
    for (const ChunkRecord& record : block.head.records) {
      if (record.name == names.one || record.name == names.other) salts.push_back(salted(record));
    }
  }
  REQUIRE(salts == std::vector<uint8_t>{0, 1});
}

TEST_CASE("both members come back though the footer that distinguishes them cannot be read") {
  const Collision collision = CollisionNumber(GENERATE(0, 2));
  StoreUnderTest store;
  store.Open();
  const ChunkName one = PutOne(store.chunks(), collision.one);
  store.Commit();
  store.Crash();
  store.Open();  // sealed now
  const auto place = Find(store, one);
  REQUIRE(place);
  const std::string path = SegmentPath(store.path(), place->segment);
  auto info = store.env().GetFileInfo(path);
  REQUIRE_OK(info);
  const uint64_t footer = info->size - kSegmentTrailerSize - kFooterBlockSize - kFooterChunkSize;
  uint64_t counted = 1;
  SECTION("its trailer is damaged") { FlipByte(store, path, info->size - 20); }
  SECTION("its tag of the chunk is damaged") { FlipByte(store, path, footer + 8); }
  SECTION("its name of the chunk is damaged") { FlipByte(store, path, footer); }
  SECTION("its trailer and the block are damaged") {
    FlipByte(store, path, info->size - 20);
    FlipByte(store, path, place->block_offset + 20);
    counted = 0;  // it is unknown whether this was a collision
  }
  const ChunkName other = PutOne(store.chunks(), collision.other);
  REQUIRE(other != one);
  REQUIRE(ComesBack(store.chunks(), other, collision.other));
  REQUIRE(store.chunks().totals().sha1_collisions == counted);
  if (counted == 0) {
    REQUIRE_CODE(store.chunks().Get(one, static_cast<uint32_t>(collision.one.size())), kCorruption);
  } else {
    REQUIRE(PutOne(store.chunks(), collision.one) == one);
    REQUIRE(ComesBack(store.chunks(), one, collision.one));
  }
}

}  // namespace siltfs::testing
