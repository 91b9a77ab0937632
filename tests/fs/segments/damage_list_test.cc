#include "fs/segments/damage_list.h"

#include "fs/records/last_scrub_record.h"
#include "fs/records/schema.h"
#include "fs/records/scrub_record.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

using Match = DamageList::Match;

// A block of chunks with the prefixes seed, seed + 1, ...; each tag is ten times the prefix.
DamagedBlock Block(SegmentId segment, uint32_t first, uint32_t count, uint64_t seed) {
  DamagedBlock block{segment, first, {}};
  for (uint32_t i = 0; i < count; ++i) block.chunks.push_back({seed + i, (seed + i) * 10});
  return block;
}

}  // namespace

TEST_CASE("a damage list knows the places, name prefixes and tags of chunks") {
  DamageList list({});
  CHECK(list.empty());
  CHECK_FALSE(list.Contains(1, 0));
  REQUIRE(list.Add(Block(7, 100, 5, 1000)));
  CHECK_FALSE(list.Add(Block(7, 100, 5, 1000)));
  CHECK_FALSE(list.empty());
  CHECK_FALSE(list.Contains(7, 99));
  CHECK(list.Contains(7, 100));
  CHECK(list.Contains(7, 104));
  CHECK_FALSE(list.Contains(7, 105));
  CHECK_FALSE(list.Contains(6, 100));
  CHECK_FALSE(list.Contains(8, 100));
  CHECK(list.HasAnyOf(7));
  CHECK_FALSE(list.HasAnyOf(6));

  CHECK(list.Find(1000, 10'000) == Match::kSame);
  CHECK(list.Find(1000, 10'010) == Match::kOther);
  CHECK(list.Find(999, 10'000) == Match::kNone);
  CHECK((list.ChunkAt(7, 101) == DamagedChunk{1001, 10'010}));
  CHECK_FALSE(list.ChunkAt(7, 99));
  CHECK(list.totals().blocks == 1);
  CHECK(list.totals().chunks == 5);
}

TEST_CASE("listed chunks with one name are distinguished by their tags") {
  DamageList list({});
  REQUIRE(list.Add({3, 0, {{5, 50}}}));
  REQUIRE(list.Add({4, 0, {{5, 51}}}));
  CHECK(list.Find(5, 50) == Match::kSame);
  CHECK(list.Find(5, 51) == Match::kSame);
  CHECK(list.Find(5, 52) == Match::kOther);
  list.Forget(3);
  CHECK(list.Find(5, 50) == Match::kOther);
  CHECK(list.Find(5, 51) == Match::kSame);
}

TEST_CASE("a listed chunk of which only the place is known matches no name") {
  DamageList list({});
  REQUIRE(list.Add({3, 8, std::vector<DamagedChunk>(2)}));
  CHECK(list.Contains(3, 9));
  REQUIRE(list.ChunkAt(3, 9));
  CHECK_FALSE(list.ChunkAt(3, 9)->known());
  CHECK(list.Find(0, 0) == Match::kNone);
}

TEST_CASE("a block that was listed in part is still listed only once") {
  DamageList list({});
  REQUIRE(list.Add(Block(1, 5, 1, 5)));
  REQUIRE(list.Add(Block(1, 3, 6, 3)));
  CHECK(list.totals().chunks == 6);
  for (uint32_t ordinal = 3; ordinal < 9; ++ordinal) CHECK(list.Contains(1, ordinal));
  CHECK_FALSE(list.Contains(1, 9));
  CHECK(list.Find(8, 80) == Match::kSame);
  list.Forget(1);
  CHECK(list.empty());
  CHECK(list.Find(8, 80) == Match::kNone);
}

TEST_CASE("Replace sets the damage in the verified part of a segment, and changes no other") {
  DamageList list({});
  REQUIRE(list.Add(Block(1, 0, 2, 1)));
  REQUIRE(list.Add(Block(2, 0, 2, 10)));
  REQUIRE(list.Add(Block(2, 20, 2, 20)));
  const std::vector<DamagedBlock> found = {Block(2, 20, 2, 20), Block(2, 30, 1, 30)};
  REQUIRE(list.Add(Block(2, 40, 1, 40)));  // behind the verified part
  CHECK(list.Replace(2, found, 40));
  CHECK_FALSE(list.Replace(2, found, 40));
  const std::vector<DamagedBlock> all = {Block(1, 0, 2, 1), found[0], found[1],
                                         Block(2, 40, 1, 40)};
  CHECK((list.All() == all));
}

TEST_CASE("a list counts the blocks that were not known before") {
  DamageList list(std::vector{Block(1, 0, 4, 1)});
  CHECK(list.totals().found_blocks == 0);
  REQUIRE(list.Add(Block(1, 8, 2, 8)));
  CHECK_FALSE(list.Add(Block(1, 8, 2, 8)));
  CHECK(list.totals().found_blocks == 1);
  // The known chunks with other boundaries, and one chunk more.
  const std::vector<DamagedBlock> found = {Block(1, 0, 2, 1), Block(1, 2, 2, 3), Block(1, 8, 3, 8)};
  CHECK(list.Replace(1, found, 20));
  CHECK(list.totals().found_blocks == 2);
  CHECK_FALSE(list.Replace(1, found, 20));
  list.Forget(1);
  CHECK(list.totals().found_blocks == 2);
  REQUIRE(list.Add(Block(1, 0, 4, 1)));
  CHECK(list.totals().found_blocks == 3);
}

TEST_CASE("metadata gets a change again until a commit that contains the change has succeeded") {
  DamageList list(std::vector{Block(1, 0, 2, 1)});
  CHECK(list.Changes().empty());
  REQUIRE(list.Add(Block(2, 0, 2, 10)));
  std::vector<Mutation> told;
  list.TellChanges(told);
  REQUIRE(told.size() == 1);
  CHECK(told[0].key == DamageKey(2, 0));
  REQUIRE(told[0].value);
  CHECK((*DamagedBlock::DecodeChunks(*told[0].value) == Block(2, 0, 2, 10).chunks));
  // The commit has found the disk full and will be repeated. Before that, the list changes again.
  list.Forget(1);
  told.clear();
  list.TellChanges(told);
  REQUIRE(told.size() == 2);
  CHECK(told[1].key == DamageKey(1, 0));
  CHECK_FALSE(told[1].value);
  REQUIRE(list.Add(Block(3, 0, 1, 30)));
  list.CommitDone();
  REQUIRE(list.Changes().size() == 1);
  CHECK(list.Changes()[0].key == DamageKey(3, 0));
}

TEST_CASE("a damage list holds at most kMostBlocks blocks") {
  DamageList list({});
  for (uint32_t i = 0; i <= DamageList::kMostBlocks; ++i) list.Add({i + 1, 0, {{i + 1, 1}}});
  CHECK(list.totals().blocks == DamageList::kMostBlocks);
  CHECK_FALSE(list.Contains(DamageList::kMostBlocks + 1, 0));
}

// If the list compared all these chunks one by one, the test would take days.
TEST_CASE("a list of chunks with one name prefix is as fast as any other") {
  DamageList list({});
  constexpr uint32_t kInSegment = 4096;
  const auto count = static_cast<uint32_t>(DamageList::kMostChunks / kInSegment);
  for (uint32_t segment = 1; segment <= count; ++segment) {
    DamagedBlock block{segment, 0, {}};
    for (uint32_t i = 0; i < kInSegment; ++i)
      block.chunks.push_back({7, uint64_t{segment} * kInSegment + i});
    REQUIRE(list.Add(block));
  }
  for (uint32_t tag = 1; tag < kInSegment; ++tag) CHECK(list.Find(7, tag) == Match::kOther);
  CHECK(list.Find(7, uint64_t{count} * kInSegment) == Match::kSame);
  for (uint32_t segment = count; segment > 0; --segment) list.Forget(segment);
  CHECK(list.empty());
  CHECK(list.Find(7, kInSegment) == Match::kNone);
}

TEST_CASE("records of damage and of scrubs are read back, and malformed ones are refused") {
  const DamagedBlock block{9, 3, {{0x0102030405060708, 0x1112131415161718}, {}}};
  const std::string chunks = block.EncodeChunks();
  CHECK(chunks ==
        std::string("\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11", 16) +
            std::string(16, '\0'));
  CHECK((*DamagedBlock::DecodeChunks(chunks) == block.chunks));
  REQUIRE_CODE(DamagedBlock::DecodeChunks(""), kCorruption);
  REQUIRE_CODE(DamagedBlock::DecodeChunks(chunks.substr(1)), kCorruption);
  REQUIRE_CODE(DamagedBlock::DecodeChunks(std::string(16 * 4097, 'x')), kCorruption);
  CHECK(DamageKey(0x01020304, 0x05060708) == std::string("b\x01\x02\x03\x04\x05\x06\x07\x08", 9));
  CHECK(ParseDamageKey(DamageKey(9, 3)) == std::pair<SegmentId, uint32_t>(9, 3));
  CHECK_FALSE(ParseDamageKey(SegmentKey(9)));

  const ScrubRecord scrub{1, 2, 3, 4, 5, 6, 7, 8};
  REQUIRE(scrub.Encode().size() == 60);
  CHECK(scrub.Encode().substr(0, 5) == std::string("\x01\0\0\0\x02", 5));
  CHECK((*ScrubRecord::Decode(scrub.Encode()) == scrub));
  REQUIRE_CODE(ScrubRecord::Decode(scrub.Encode() + "x"), kCorruption);

  const LastScrubRecord last{
      .ended_ns = 1, .damaged_blocks = 2, .damaged_chunks = 3, .damaged_footers = 4};
  REQUIRE(last.Encode().size() == 33);
  CHECK(last.Encode().substr(0, 10) == std::string("\x01\x01\0\0\0\0\0\0\0\x02", 10));
  CHECK((*LastScrubRecord::Decode(last.Encode()) == last));
  REQUIRE_CODE(LastScrubRecord::Decode(""), kCorruption);
  REQUIRE_CODE(LastScrubRecord::Decode(last.Encode() + "x"), kCorruption);
  REQUIRE_CODE(LastScrubRecord::Decode("\x02" + last.Encode().substr(1)), kNeedsNewer);
}

}  // namespace siltfs::testing
