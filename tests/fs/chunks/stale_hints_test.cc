// An index entry is a hint: for any entry, a read returns the right bytes or an error. Damage loses
// exactly the chunks that lie in it.
#include <algorithm>

#include "store/segment/segment_files.h"
#include "store/segment/segment_footer.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Settings of a small store. The tests open it again after they have put chunks, so that its caches
// are empty. Otherwise the footer cache would find the chunks instead of the index.
StoreSettings SmallSettings() {
  StoreSettings settings;
  settings.index = TestIndex::kSilt;
  return settings;
}

struct Hint {
  std::string what;
  std::optional<Location> location;
};

// Every way in which an entry can be wrong, for a chunk that lies at `right`.
std::vector<Hint> WrongHints(const Location& right, const Location& other) {
  auto with = [&right](auto change) {
    Location location = right;
    change(location);
    return location;
  };
  return {
      {"no entry", std::nullopt},
      {"a segment that is gone", with([](Location& l) { l.segment = 999; })},
      {"a segment far from all", with([](Location& l) { l.segment = 0xfffffffe; })},
      {"the ordinal before", with([](Location& l) { l.ordinal -= 1; })},
      {"the ordinal behind", with([](Location& l) { l.ordinal += 1; })},
      {"an ordinal of another block", with([](Location& l) { l.ordinal += 30; })},
      {"an ordinal beyond the segment", with([](Location& l) { l.ordinal = 0xfffff; })},
      {"a block's middle", with([](Location& l) { l.block_offset += 100; })},
      {"the header", with([](Location& l) { l.block_offset = 0; })},
      {"an offset beyond the segment", with([](Location& l) { l.block_offset = 0x1ffffff; })},
      {"another block's offset", with([&](Location& l) { l.block_offset = other.block_offset; })},
      {"another chunk's place", other},
  };
}

}  // namespace

TEST_CASE("for any index entry the chunk comes back, and a second put loses nothing") {
  const bool sealed = GENERATE(true, false);
  const size_t number = GENERATE(range(0, 12));
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 25);
  store.Commit();
  if (sealed) store.Crash(), store.Open();
  const auto right = Find(store, all.names[9]);
  const auto other = Find(store, all.names[20]);
  REQUIRE(right);
  REQUIRE(other);
  REQUIRE(right->block_offset != other->block_offset);
  const Hint hint = WrongHints(*right, *other).at(number);
  INFO(hint.what << (sealed ? ", sealed" : ", open"));

  SECTION("get") {
    store.index().Say(all.names[9], hint.location);
    REQUIRE(ComesBack(store.chunks(), all.names[9], all.chunks[9]));
    REQUIRE(ComesBack(store.chunks(), all.names[9], all.chunks[9]));  // from the footer cache
    RequireAll(store.chunks(), all);
  }
  SECTION("put") {
    store.index().Say(all.names[9], hint.location);
    const ChunkName again = PutOne(store.chunks(), all.chunks[9]);
    REQUIRE(again == all.names[9]);
    REQUIRE(store.chunks().totals().sha1_collisions == 0);
    store.Commit();
    REQUIRE(CountCopies(store, again) <= 2);
    RequireAll(store.chunks(), all);
    store.Reopen();
    RequireAll(store.chunks(), all);
    REQUIRE(PutOne(store.chunks(), all.chunks[9]) == again);
    store.Commit();
    REQUIRE(CountCopies(store, again) <= 2);
  }
}

TEST_CASE("a chunk with a lost entry is stored again, and then found again") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 25);
  store.Reopen();
  store.index().Say(all.names[3], std::nullopt);
  REQUIRE(PutOne(store.chunks(), all.chunks[3]) == all.names[3]);
  store.Commit();
  REQUIRE(CountCopies(store, all.names[3]) == 2);
  REQUIRE(PutOne(store.chunks(), all.chunks[3]) == all.names[3]);
  store.Commit();
  REQUIRE(CountCopies(store, all.names[3]) == 2);
  RequireAll(store.chunks(), all);
}

TEST_CASE("an index that cannot be read does not prevent reads of chunks") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 25);
  store.Reopen();
  store.index().FailGets(Status(StatusCode::kIoError, "the index's disk is broken"));
  RequireAll(store.chunks(), all);
  store.index().FailGets(Status::Ok());
}

TEST_CASE("chunks that the index has lost are found in unsealed segments of a read-only store") {
  StoreUnderTest store;
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 1, 10);
  store.Close();
  REQUIRE(std::any_of(store.committed().segments.begin(), store.committed().segments.end(),
                      [](const auto& segment) { return !segment.second.sealed; }));
  store.Open(/*read_only=*/true);
  for (const ChunkName& name : all.names) store.index().Say(name, std::nullopt);
  RequireAll(store.chunks(), all);
}

TEST_CASE("damage in a block costs exactly its chunks, and is reported with its place") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 60);
  const bool sealed = GENERATE(true, false);
  if (sealed) {
    store.Commit();
    store.Crash();
  } else {
    store.Close();
  }
  const std::vector<FoundBlock> blocks = AllBlocks(store);
  // The damaged block is the first one, or the last one, without which the segment is shorter.
  const bool last = GENERATE(false, true);
  const FoundBlock block = last ? blocks.back() : blocks.front();
  const uint32_t head_bytes = block.head.head_bytes();
  const uint32_t where = GENERATE_COPY(values<uint32_t>({0, 20, 60, 1u << 20, 1u << 21}));
  // The damaged byte is in the block's header, in its chunk table, or at the beginning or the end
  // of its payload.
  const uint64_t offset = block.offset + (where == 1u << 20   ? head_bytes
                                          : where == 1u << 21 ? block.head.total_bytes() - 1
                                                              : where);
  INFO("byte " << offset - block.offset << " of the " << (last ? "last" : "first") << " block, "
               << (sealed ? "sealed" : "open"));
  const std::string path = SegmentPath(store.path(), block.segment);
  // Damage a sealed segment after recovery: recovery seals the segment, and would report the
  // damage.
  if (sealed) store.Open();
  FlipByte(store, path, offset);
  if (!sealed) store.Open();

  auto check = [&] {
    size_t damaged = 0;
    for (size_t i = 0; i < all.chunks.size(); ++i) {
      bool in_block = false;
      for (const ChunkRecord& record : block.head.records) in_block |= record.name == all.names[i];
      if (!in_block) {
        REQUIRE(ComesBack(store.chunks(), all.names[i], all.chunks[i]));
        continue;
      }
      ++damaged;
      auto got = store.chunks().Get(all.names[i], static_cast<uint32_t>(all.chunks[i].size()));
      REQUIRE_CODE(got, kCorruption);
      REQUIRE(got.status().path() == path);
      REQUIRE(got.status().offset().has_value());
      REQUIRE(*got.status().offset() >= block.offset);
      REQUIRE(*got.status().offset() < block.offset + block.head.total_bytes());
    }
    REQUIRE(damaged == block.head.records.size());
  };
  check();
  check();
  // The store keeps working: for other chunks, for new ones, over a remount.
  const PutChunks more = PutMany(store.chunks(), 5000, 30);
  store.Reopen();
  check();
  RequireAll(store.chunks(), more);
}

TEST_CASE("a second, whole copy is found when the first one is damaged") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 25);
  store.Reopen();
  const auto first = Find(store, all.names[3]);
  REQUIRE(first);
  store.index().Say(all.names[3], std::nullopt);
  PutOne(store.chunks(), all.chunks[3]);
  store.Reopen();
  const auto second = Find(store, all.names[3]);
  REQUIRE(second);
  REQUIRE(*second != *first);
  const Location damaged = GENERATE_COPY(values<Location>({*first, *second}));
  FlipByte(store, SegmentPath(store.path(), damaged.segment), damaged.block_offset + 25);
  SECTION("the index leads to the first") { store.index().Say(all.names[3], *first); }
  SECTION("the index leads to the second") { store.index().Say(all.names[3], *second); }
  SECTION("the index leads to neither") { store.index().Say(all.names[3], std::nullopt); }
  REQUIRE(ComesBack(store.chunks(), all.names[3], all.chunks[3]));
}

TEST_CASE("a damaged footer costs no chunk") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks all = PutMany(store.chunks(), 0, 60);
  store.Commit();
  store.Crash();
  store.Open();
  const SegmentId segment = AllBlocks(store).back().segment;
  const std::string path = SegmentPath(store.path(), segment);
  auto info = store.env().GetFileInfo(path);
  REQUIRE_OK(info);
  const uint64_t tables =
      AllBlocks(store).back().offset + AllBlocks(store).back().head.total_bytes();
  const uint64_t trailer = info->size - kSegmentTrailerSize;
  SECTION("in its trailer") { FlipByte(store, path, trailer + GENERATE(0, 9, 30, 63)); }
  SECTION("in its chunk table") { FlipByte(store, path, tables + GENERATE(0, 8, 100)); }
  SECTION("in its block table") { FlipByte(store, path, trailer - GENERATE(1, 5, 8, 16)); }
  RequireAll(store.chunks(), all);
  store.Kill();
  store.Open();
  RequireAll(store.chunks(), all);
}

TEST_CASE("a segment that is missing costs its chunks and nothing else") {
  StoreUnderTest store(SmallSettings());
  store.Open();
  const PutChunks first = PutMany(store.chunks(), 0, 10);
  const bool sealed = GENERATE(true, false);
  if (sealed) {
    store.Commit();
    store.Crash();
    store.Open();
  }
  store.Close();
  REQUIRE_OK(RemoveSegment(store.env(), store.path(), Find(store, first.names[0])->segment));
  store.Open();
  for (size_t i = 0; i < first.chunks.size(); ++i) {
    REQUIRE_CODE(store.chunks().Get(first.names[i], 2000), kCorruption);
  }
  // Putting them again heals them.
  PutChunks again = first;
  REQUIRE_OK(TryPut(store.chunks(), again));
  REQUIRE(again.names == first.names);
  store.Reopen();
  RequireAll(store.chunks(), first);
}

TEST_CASE("a hint into a recompressed segment is known to be wrong, and costs no read") {
  StoreUnderTest store;
  store.Open();
  const PutChunks put = PutRepetitive(store.chunks(), 4000, 800);
  store.chunks().WaitUntilSealed();
  store.Commit();
  const auto outcome = store.recompressor().Recompress();
  REQUIRE_OK(outcome);
  REQUIRE(outcome->segments > 5);
  store.Reopen();
  SegmentId last = kNoSegment;
  size_t segments = 0;
  for (size_t i = 0; i < put.names.size(); ++i) {
    const auto location = store.index().Get(put.names[i]);
    REQUIRE_OK(location);
    REQUIRE(*location);
    const bool met = (*location)->segment <= last;
    if (met || !store.committed().segments[(*location)->segment].recompressed) continue;
    last = (*location)->segment;
    ++segments;
    const uint64_t before = store.env().Calls(SimCall::kRead);
    REQUIRE(ComesBack(store.chunks(), put.names[i], put.chunks[i]));
    // The four reads: trailer, block table, block, and the footer entries around the chunk.
    CHECK(store.env().Calls(SimCall::kRead) - before == 4);
  }
  CHECK(segments == outcome->segments + outcome->kept);
}

TEST_CASE("segments are not recompressed before the index has their blocks durably") {
  StoreUnderTest store;
  store.Open();
  store.index().FailFlushes(Status(StatusCode::kIoError, "not now"));
  const PutChunks put = PutRepetitive(store.chunks(), 4000, 800);
  store.chunks().WaitUntilSealed();
  store.Commit();
  auto outcome = store.recompressor().Recompress();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments + outcome->kept == 0);
  CHECK(outcome->left > 5);
  // The replay puts the lost entries again, and then the index has the blocks.
  store.Crash();
  store.Open();
  outcome = store.recompressor().Recompress();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments > 5);
  CHECK(outcome->left <= 1);  // the last sequence put may still get more entries
  store.Crash();
  store.Open();
  RequireAll(store.chunks(), put);
}

}  // namespace siltfs::testing
