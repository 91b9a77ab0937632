// Scanning blocks: torn tails, damage, and continuing after damage.
#include "store/segment/segment_scan.h"

#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

struct Walk {
  ScanResult result;
  std::vector<uint32_t> offsets;
  std::vector<std::pair<uint64_t, uint64_t>> damage;
};

Result<Walk> Scan(TestStore& store, SegmentId id, ScanOptions options, bool go_on = false) {
  Walk walk;
  if (go_on) {
    options.on_damage = [&](uint64_t begin, uint64_t end, const Status& cause) {
      CHECK(cause.Is(StatusCode::kCorruption));
      walk.damage.emplace_back(begin, end);
      return Status::Ok();
    };
  }
  auto reader = store.Open(id);
  auto result = ScanBlocks(reader->file(), store.Identity(id), options,
                           [&](const BlockHead& head, uint32_t offset) {
                             CHECK(head.segment == id);
                             walk.offsets.push_back(offset);
                             return Status::Ok();
                           });
  if (!result.ok()) return std::move(result).status();
  walk.result = *result;
  return walk;
}

// An unsealed segment of three blocks.
struct Scanned : TestStore {
  Scanned() {
    auto writer = Create(1);
    places = AppendAll(*writer, codec, kSmallSegment);
    for (const BlockPlace& place : places) offsets.push_back(place.block_offset);
    size = writer->size();
  }
  std::vector<BlockPlace> places;
  std::vector<uint32_t> offsets;
  uint64_t size = 0;
};

}  // namespace

TEST_CASE("A scan visits every block in order and returns the totals") {
  Scanned store;
  for (bool verify : {false, true}) {
    Walk walk = Must(Scan(store, 1, {.committed_length = store.size, .verify_payloads = verify}));
    CHECK(walk.offsets == store.offsets);
    CHECK(walk.result.valid_end == store.size);
    CHECK_FALSE(walk.result.torn);
    CHECK(walk.result.stopped_reason.empty());
    CHECK(walk.result.blocks == 3);
    CHECK(walk.result.end_ordinal == 8);
    CHECK(walk.result.plain_bytes == 821);
    CHECK(walk.result.first_sequence == 1000);
    CHECK(walk.result.last_sequence == 1002);
  }
}

TEST_CASE("A scan can begin at any block and end at a given offset") {
  Scanned store;
  Walk walk = Must(Scan(store, 1, {.from = store.offsets[1], .end = store.offsets[2]}));
  CHECK(walk.offsets == std::vector<uint32_t>{store.offsets[1]});
  CHECK(walk.result.valid_end == store.offsets[2]);
  CHECK_FALSE(walk.result.torn);
}

TEST_CASE("A sealed segment is scanned up to its footer") {
  TestStore store;
  auto writer = store.Create(1);
  AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  uint64_t data_end = writer->totals().data_end;
  Walk walk = Must(Scan(store, 1, {.committed_length = data_end, .end = data_end}));
  CHECK(walk.result.blocks == 3);
  CHECK_FALSE(walk.result.torn);
  // Without `end`, the scan reports the footer as a torn tail, but not as a block.
  walk = Must(Scan(store, 1, {.committed_length = data_end}));
  CHECK(walk.result.blocks == 3);
  CHECK(walk.result.valid_end == data_end);
  CHECK(walk.result.torn);
}

TEST_CASE("A visitor's failure ends the scan and is returned") {
  Scanned store;
  auto reader = store.Open(1);
  int visits = 0;
  auto result = ScanBlocks(reader->file(), store.Identity(1), {}, [&](const BlockHead&, uint32_t) {
    return ++visits == 2 ? Status(StatusCode::kAborted, "enough") : Status::Ok();
  });
  REQUIRE_CODE(result, kAborted);
  CHECK(visits == 2);
}

TEST_CASE(
    "A segment cut off anywhere above the committed length ends in a torn tail; below it is "
    "damage") {
  Scanned store;
  std::string whole = store.FileBytes(1);
  uint64_t committed = store.offsets[2];
  for (uint64_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(size);
    store.SetFileBytes(1, whole.substr(0, size));
    for (bool verify : {false, true}) {
      auto walk = Scan(store, 1, {.committed_length = committed, .verify_payloads = verify});
      if (size < committed) {
        REQUIRE_CODE(walk, kCorruption);
        CHECK(walk.status().path() == SegmentPath(store.path, 1));
        CHECK(walk.status().offset().has_value());
        continue;
      }
      REQUIRE_OK(walk);
      CHECK(walk->result.valid_end == (size == whole.size() ? size : committed));
      CHECK(walk->result.torn == (size != committed && size != whole.size()));
      CHECK(walk->result.torn == !walk->result.stopped_reason.empty());
    }
  }
}

TEST_CASE(
    "A flipped byte above the committed length ends the scan before its block; below it is "
    "damage") {
  Scanned store;
  uint64_t committed = store.offsets[2];
  for (uint64_t at = kSegmentHeaderSize; at < store.size; ++at) {
    CAPTURE(at);
    store.FlipByte(1, at);
    auto walk = Scan(store, 1, {.committed_length = committed, .verify_payloads = true});
    if (at < committed) {
      REQUIRE_CODE(walk, kCorruption);
    } else {
      REQUIRE_OK(walk);
      CHECK(walk->result.valid_end == committed);
      CHECK(walk->result.torn);
    }
    store.FlipByte(1, at);
  }
}

TEST_CASE("Payloads are verified only on request") {
  Scanned store;
  store.FlipByte(1, store.offsets[2] - 1);
  CHECK(Must(Scan(store, 1, {.committed_length = store.size})).result.blocks == 3);
  REQUIRE_CODE(Scan(store, 1, {.committed_length = store.size, .verify_payloads = true}),
               kCorruption);
}

TEST_CASE("A scan with a damage callback continues at the next whole block") {
  Scanned store;
  std::vector<uint64_t> ends = {store.offsets[1], store.offsets[2], store.size};
  for (size_t block = 0; block < 3; ++block) {
    for (uint64_t at = store.offsets[block]; at < ends[block]; ++at) {
      CAPTURE(block, at);
      store.FlipByte(1, at);
      Walk walk =
          Must(Scan(store, 1, {.committed_length = store.size, .verify_payloads = true}, true));
      std::vector<uint32_t> left = store.offsets;
      left.erase(left.begin() + static_cast<ptrdiff_t>(block));
      CHECK(walk.offsets == left);
      CHECK(walk.damage ==
            std::vector<std::pair<uint64_t, uint64_t>>{{store.offsets[block], ends[block]}});
      CHECK_FALSE(walk.result.torn);
      store.FlipByte(1, at);
    }
  }
}

TEST_CASE("Each damaged block is reported, even if the file is too short") {
  Scanned store;
  store.FlipByte(1, store.offsets[0] + 1);
  store.SetFileBytes(1, store.FileBytes(1).substr(0, store.size - 10));
  Walk walk = Must(Scan(store, 1, {.committed_length = store.size, .verify_payloads = true}, true));
  CHECK(walk.offsets == std::vector<uint32_t>{store.offsets[1]});
  CHECK(walk.damage == std::vector<std::pair<uint64_t, uint64_t>>{
                           {store.offsets[0], store.offsets[1]}, {store.offsets[2], store.size}});
  store.SetFileBytes(1, store.FileBytes(1).substr(0, store.offsets[2]));
  walk = Must(Scan(store, 1, {.committed_length = store.size, .verify_payloads = true}, true));
  CHECK(walk.damage.back() == std::pair<uint64_t, uint64_t>{store.offsets[2], store.size});
}

TEST_CASE("After damage, whole blocks above the committed length still count") {
  Scanned store;
  store.FlipByte(1, store.offsets[1] + 1);
  Walk walk = Must(Scan(store, 1, {.committed_length = store.offsets[2]}, true));
  CHECK(walk.offsets == std::vector<uint32_t>{store.offsets[0], store.offsets[2]});
  store.FlipByte(1, store.offsets[2] + 1);
  walk = Must(Scan(store, 1, {.committed_length = store.offsets[2]}, true));
  CHECK(walk.offsets == std::vector<uint32_t>{store.offsets[0]});
  CHECK(walk.damage ==
        std::vector<std::pair<uint64_t, uint64_t>>{{store.offsets[1], store.offsets[2]}});
  CHECK(walk.result.torn);
}

TEST_CASE("A whole block in the wrong place is not accepted as the next one") {
  Scanned store;
  std::string whole = store.FileBytes(1);
  std::string first = whole.substr(store.offsets[0], store.offsets[1] - store.offsets[0]);
  // A copy of the first block follows the last one. Its ordinals and its sequence do not continue
  // those of the last block.
  store.SetFileBytes(1, whole + first);
  Walk walk = Must(Scan(store, 1, {.committed_length = store.size}));
  CHECK(walk.result.valid_end == store.size);
  CHECK(walk.result.torn);
  // The second block follows the header. Its ordinals do not begin at 0, although no bytes are
  // missing between header and block.
  store.SetFileBytes(1, whole.substr(0, kSegmentHeaderSize) + whole.substr(store.offsets[1]));
  walk = Must(Scan(store, 1, {}));
  CHECK(walk.result.blocks == 0);
  CHECK(walk.result.torn);
}

TEST_CASE("After a block with an intact head the next one must continue its ordinals") {
  TestStore store;
  auto writer = store.Create(1);
  const auto places = AppendAll(*writer, store.codec, {{100, 200, 1}, {300}, {40, 50}, {60, 70}});
  const std::string whole = store.FileBytes(1);
  const uint64_t lost = places[2].block_offset;
  store.SetFileBytes(1, whole.substr(0, lost) + whole.substr(places[3].block_offset));
  // Damages the head of the first block and the payload of the second; the third is missing.
  store.FlipByte(1, places[0].block_offset + 1);
  store.FlipByte(1, places[1].block_offset + kBlockHeaderSize + kChunkTableEntrySize + 1);
  const uint64_t size = store.FileBytes(1).size();
  Walk walk = Must(Scan(store, 1, {.committed_length = size, .verify_payloads = true}, true));
  CHECK(walk.offsets.empty());
  CHECK(walk.damage ==
        std::vector<std::pair<uint64_t, uint64_t>>{{places[0].block_offset, places[1].block_offset},
                                                   {places[1].block_offset, lost},
                                                   {lost, size}});
}

TEST_CASE("A block with the expected ordinal but an older sequence is not accepted") {
  Scanned store;
  // The last block comes from an earlier writer of the same segment, which used lower sequences.
  TestStore earlier;
  auto writer = earlier.Create(1);
  AppendAll(*writer, earlier.codec, kSmallSegment, kZstd3, 1);
  std::string stale = earlier.FileBytes(1).substr(store.offsets[2]);
  store.SetFileBytes(1, store.FileBytes(1).substr(0, store.offsets[2]) + stale);
  Walk walk = Must(Scan(store, 1, {}));
  CHECK(walk.result.valid_end == store.offsets[2]);
  CHECK(walk.result.torn);
}

TEST_CASE("A block with content that looks like blocks is one block") {
  TestStore store;
  auto inner = store.Create(1);
  AppendAll(*inner, store.codec, kSmallSegment);
  std::string image = store.FileBytes(1);
  inner.reset();
  REQUIRE_OK(RemoveSegment(store.env, store.path, 1));
  // A chunk that holds a whole segment of the same store and id, as in a backup of the store into
  // itself.
  auto writer = store.Create(1);
  TestChunk chunk = MakeChunk(1, static_cast<uint32_t>(image.size()));
  chunk.bytes.assign(image.begin(), image.end());
  Must(writer->Append(Encode(store.codec, {chunk}, kPlain), 1, 0));
  uint32_t second =
      Must(writer->Append(Encode(store.codec, MakeChunks(2, {50})), 2, 0)).block_offset;
  CHECK(Must(Scan(store, 1, {.committed_length = writer->size()})).result.blocks == 2);
  CHECK(Must(Scan(store, 1, {.committed_length = writer->size()})).offsets.back() == second);
}

TEST_CASE("Many bytes that look like block beginnings are searched in bounded time") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  std::string bytes = store.FileBytes(1);
  std::string header = bytes.substr(places[0].block_offset, kBlockHeaderSize);
  writer.reset();
  bytes.resize(kSegmentHeaderSize);
  while (bytes.size() < (256U << 10)) bytes += header;
  store.SetFileBytes(1, bytes);
  Walk walk = Must(Scan(store, 1, {.committed_length = bytes.size()}, true));
  CHECK(walk.offsets.empty());
  CHECK(walk.damage ==
        std::vector<std::pair<uint64_t, uint64_t>>{{kSegmentHeaderSize, bytes.size()}});
}

TEST_CASE("A failing device ends a scan with its error, not with a torn tail") {
  Scanned store;
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    store.env.FailCall({.calls = SimCall::kRead, .nth = nth});
    REQUIRE_CODE(Scan(store, 1, {}, true), kIoError);
    store.env.ClearFaults();
  }
}
