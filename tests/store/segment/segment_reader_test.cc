#include "store/segment/segment_reader.h"

#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

TEST_CASE("Header, footer, blocks and heads of a sealed segment are read back") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  auto reader = store.Open(1);
  CHECK(Must(reader->IsSealed()));
  SegmentTrailer trailer = Must(reader->ReadTrailer());
  CHECK(trailer == writer->totals());
  SegmentFooter footer = Must(reader->ReadFooter());
  CHECK(footer.trailer == trailer);
  CHECK(footer.blocks == places);
  for (size_t i = 0; i < places.size(); ++i) {
    auto block = Must(reader->ReadBlock(places[i].block_offset));
    RequireSame(*block, ChunksOf(kSmallSegment, i));
    CHECK(block->head().last_commit == 8);
    CHECK(block->head().sequence == 1000 + i);
    CHECK(Must(reader->ReadBlockHead(places[i].block_offset)) == block->head());
  }
}

TEST_CASE("A part of the footer equals that part of the whole footer") {
  TestStore store;
  auto writer = store.Create(1);
  AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  auto reader = store.Open(1);
  SegmentFooter footer = Must(reader->ReadFooter());
  for (uint32_t first = 0; first <= 9; ++first) {
    for (uint32_t count : {0U, 1U, 3U, 8U, 0xffffffffU}) {
      CAPTURE(first, count);
      size_t begin = std::min<size_t>(first, 8);
      size_t end = std::min<size_t>(begin + count, 8);
      CHECK(Must(reader->ReadFooterWindow(first, count)) ==
            std::vector<FooterChunk>(footer.chunks.begin() + static_cast<ptrdiff_t>(begin),
                                     footer.chunks.begin() + static_cast<ptrdiff_t>(end)));
    }
    CHECK(Must(reader->FindBlock(first)) == footer.FindBlock(first));
  }
}

TEST_CASE("A part of the footer costs one read once the trailer was read") {
  TestStore store;
  auto writer = store.Create(1);
  AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  auto reader = store.Open(1);
  Must(reader->ReadTrailer());
  uint64_t before = store.env.Calls(SimCall::kRead);
  Must(reader->ReadFooterWindow(2, 4));
  CHECK(store.env.Calls(SimCall::kRead) == before + 1);
}

TEST_CASE("A block of usual size costs one read") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  auto reader = store.Open(1);
  uint64_t before = store.env.Calls(SimCall::kRead);
  Must(reader->ReadBlock(places[1].block_offset));
  Must(reader->ReadBlockHead(places[1].block_offset));
  CHECK(store.env.Calls(SimCall::kRead) == before + 2);
}

TEST_CASE("An unsealed segment has blocks but no footer") {
  TestStore store;
  auto writer = store.Create(1);
  auto reader = store.Open(1);
  CHECK_FALSE(Must(reader->IsSealed()));
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  CHECK_FALSE(Must(reader->IsSealed()));
  REQUIRE_CODE(reader->ReadTrailer(), kInvalidArgument);
  REQUIRE_CODE(reader->ReadFooter(), kInvalidArgument);
  REQUIRE_CODE(reader->ReadFooterWindow(0, 1), kInvalidArgument);
  REQUIRE_CODE(reader->FindBlock(0), kInvalidArgument);
  RequireSame(*Must(reader->ReadBlock(places[2].block_offset)), ChunksOf(kSmallSegment, 2));
  REQUIRE_OK(writer->Seal());
  CHECK(Must(reader->IsSealed()));
  CHECK(Must(reader->FindBlock(4)) == places[2]);
}

TEST_CASE("Blocks larger than the first read are read completely") {
  TestStore store;
  auto writer = store.Create(1);
  // A block with many chunks, one with an incompressible payload, and one with the maximum of both.
  std::vector<std::vector<uint32_t>> layout = {std::vector<uint32_t>(kMaxBlockChunks, 3),
                                               {200000, 300000},
                                               std::vector<uint32_t>(kMaxBlockChunks, 512)};
  for (size_t i = 0; i < layout.size(); ++i) {
    auto chunks = MakeChunks(100 * i, layout[i], false);
    BlockPlace place = Must(writer->Append(Encode(store.codec, chunks), i + 1, 0));
    auto reader = store.Open(1);
    RequireSame(*Must(reader->ReadBlock(place.block_offset)), chunks);
    CHECK(Must(reader->ReadBlockHead(place.block_offset)).records.size() == chunks.size());
  }
}

TEST_CASE("A block can be copied unchanged to another segment") {
  TestStore store;
  auto from = store.Create(1);
  auto places = AppendAll(*from, store.codec, {{9000, 8000}});
  EncodedBlock block = Must(store.Open(1)->ReadEncodedBlock(places[0].block_offset));
  CHECK(block.codec == BlockCodecId::kZstd);
  auto to = store.Create(2);
  AppendAll(*to, store.codec, kSmallSegment);
  BlockPlace copy = Must(to->Append(block, 5000, 0));
  RequireSame(*Must(store.Open(2)->ReadBlock(copy.block_offset)), MakeChunks(100, {9000, 8000}));
}

TEST_CASE("A wrong offset is corruption that names the file and the offset") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  auto reader = store.Open(1);
  uint64_t size = store.FileBytes(1).size();
  for (uint32_t offset = 0; offset < size + 100; ++offset) {
    bool right = std::any_of(places.begin(), places.end(),
                             [&](BlockPlace p) { return p.block_offset == offset; });
    if (right) continue;
    auto block = reader->ReadBlock(offset);
    REQUIRE_CODE(block, kCorruption);
    CHECK(block.status().path() == SegmentPath(store.path, 1));
    CHECK(block.status().offset() == offset);
  }
  REQUIRE_CODE(reader->ReadBlock(0xffffffff), kCorruption);
}

TEST_CASE("A segment of another store or id returns no data") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  store.SetFileBytes(2, store.FileBytes(1));
  for (auto identity : {SegmentIdentity{TestUuid(9), 1}, store.Identity(2)}) {
    auto reader = Must(SegmentReader::Open(store.env, store.path, identity, store.codec));
    REQUIRE_CODE(reader->ReadHeader(), kCorruption);
    REQUIRE_CODE(reader->ReadBlock(places[0].block_offset), kCorruption);
    REQUIRE_CODE(reader->IsSealed(), kCorruption);
    REQUIRE_CODE(reader->ReadFooter(), kCorruption);
  }
}

TEST_CASE("A damaged header costs no chunk") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  store.FlipByte(1, 3);
  auto reader = store.Open(1);
  REQUIRE_CODE(reader->ReadHeader(), kCorruption);
  CHECK(Must(reader->ReadFooter()).chunks.size() == 8);
  RequireSame(*Must(reader->ReadBlock(places[1].block_offset)), ChunksOf(kSmallSegment, 1));
}

TEST_CASE("A missing segment is not found, and a failing device is not corruption") {
  TestStore store;
  REQUIRE_CODE(SegmentReader::Open(store.env, store.path, store.Identity(1), store.codec),
               kNotFound);
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  auto reader = store.Open(1);
  store.env.FailCall({.calls = SimCall::kRead});
  REQUIRE_CODE(reader->ReadBlock(places[0].block_offset), kIoError);
  RequireSame(*Must(reader->ReadBlock(places[0].block_offset)), ChunksOf(kSmallSegment, 0));
}
