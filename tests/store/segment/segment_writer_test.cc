// Appending, syncing, sealing, resuming after a clean unmount, and device failures.
#include "store/segment/segment_writer.h"

#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

// Checks that a reader returns the appended blocks.
void RequireHolds(TestStore& store, SegmentId id, const std::vector<BlockPlace>& places,
                  const std::vector<std::vector<uint32_t>>& layout) {
  auto reader = store.Open(id);
  REQUIRE(places.size() == layout.size());
  for (size_t i = 0; i < places.size(); ++i) {
    auto block = Must(reader->ReadBlock(places[i].block_offset));
    CHECK(block->head().first_ordinal == places[i].first_ordinal);
    RequireSame(*block, ChunksOf(layout, i));
  }
}

EncodedBlock SmallBlock(const TestStore& store, uint64_t seed = 1) {
  return Encode(store.codec, MakeChunks(seed, {500}));
}

}  // namespace

TEST_CASE("Appended blocks can be read at once, and their ordinals are consecutive") {
  TestStore store;
  auto writer = store.Create(1);
  CHECK(writer->size() == kSegmentHeaderSize);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  CHECK(places[0] == BlockPlace{kSegmentHeaderSize, 0});
  CHECK(places[1].first_ordinal == 3);
  CHECK(places[2].first_ordinal == 4);
  RequireHolds(store, 1, places, kSmallSegment);
  CHECK(writer->chunk_count() == 8);
  CHECK(writer->block_count() == 3);
  CHECK(writer->plain_bytes() == 100 + 200 + 1 + 300 + 40 + 50 + 60 + 70);
  CHECK(writer->first_sequence() == 1000);
  CHECK(writer->last_sequence() == 1002);
  CHECK(writer->size() == store.FileBytes(1).size());
}

TEST_CASE("A block is appended in one write") {
  TestStore store;
  auto writer = store.Create(1);
  uint64_t before = store.env.Calls(SimCall::kWrite);
  Must(writer->Append(SmallBlock(store), 1, 0));
  CHECK(store.env.Calls(SimCall::kWrite) == before + 1);
}

TEST_CASE("The header has the segment's identity and the last commit before its creation") {
  TestStore store;
  store.Create(5, SegmentKind::kRecipeNodes).reset();
  SegmentHeader header = Must(store.Open(5)->ReadHeader());
  CHECK(header == SegmentHeader{SegmentKind::kRecipeNodes, store.Identity(5), 7});
}

TEST_CASE("A segment id is not used twice") {
  TestStore store;
  store.Create(1).reset();
  REQUIRE_CODE(
      SegmentWriter::Create(store.env, store.path, store.Identity(1), SegmentKind::kData, 0),
      kAlreadyExists);
  REQUIRE_CODE(
      SegmentWriter::Create(store.env, store.path, store.Identity(0), SegmentKind::kData, 0),
      kInvalidArgument);
}

TEST_CASE("Synced blocks survive a power cut, including the file's name") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  CHECK(writer->synced_size() == 0);
  REQUIRE_OK(writer->Sync());
  uint64_t synced = writer->size();
  CHECK(writer->synced_size() == synced);
  Must(writer->Append(SmallBlock(store), 5000, 0));
  store.env.PowerCut();
  CHECK(store.FileBytes(1).size() == synced);
  RequireHolds(store, 1, places, kSmallSegment);
}

TEST_CASE("A sync with nothing to sync makes no device call") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  REQUIRE_OK(writer->Sync());
  uint64_t before = store.env.Calls(SimCall::kAny);
  REQUIRE_OK(writer->Sync());
  CHECK(store.env.Calls(SimCall::kAny) == before);
}

TEST_CASE("A sealed segment is durable, whole and immutable") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  CHECK(writer->sealed());
  CHECK(writer->IsFull());
  CHECK_FALSE(writer->HasRoomFor(SmallBlock(store)));
  REQUIRE_CODE(writer->Append(SmallBlock(store), 5000, 0), kInvalidArgument);
  REQUIRE_CODE(writer->Seal(), kInvalidArgument);
  REQUIRE_OK(writer->Sync());
  store.env.PowerCut();
  auto reader = store.Open(1);
  CHECK(Must(reader->IsSealed()));
  CHECK(Must(reader->ReadFooter()).trailer == writer->totals());
  CHECK(writer->totals().file_size() == writer->size());
  RequireHolds(store, 1, places, kSmallSegment);
}

TEST_CASE("The blocks are durable before the footer is written") {
  TestStore store;
  auto writer = store.Create(1);
  AppendAll(*writer, store.codec, kSmallSegment);
  uint64_t end = writer->size();
  // Seal syncs the blocks, writes the footer and syncs again. The second sync fails, and the power
  // cut loses the footer, but no block.
  store.env.FailCall({.calls = SimCall::kSync, .nth = 2});
  REQUIRE_CODE(writer->Seal(), kIoError);
  store.env.PowerCut();
  CHECK(store.FileBytes(1).size() == end);
}

TEST_CASE("A segment without a block can't be sealed") {
  TestStore store;
  REQUIRE_CODE(store.Create(1)->Seal(), kInvalidArgument);
}

TEST_CASE("A segment is full when the next block would begin at the target size or beyond") {
  TestStore store;
  auto writer = store.Create(1, SegmentKind::kData, {.target_size = 4096});
  EncodedBlock block = Encode(store.codec, MakeChunks(1, {4096 - 64 - 88}), kPlain);
  REQUIRE(block.total_bytes() == 4096 - 64);
  CHECK(writer->HasRoomFor(block));
  Must(writer->Append(block, 1, 0));
  CHECK(writer->size() == 4096);
  CHECK(writer->IsFull());
  CHECK_FALSE(writer->HasRoomFor(block));
  REQUIRE_CODE(writer->Append(block, 2, 0), kInvalidArgument);

  auto other = store.Create(2, SegmentKind::kData, {.target_size = 4097});
  Must(other->Append(block, 1, 0));
  CHECK_FALSE(other->IsFull());
  Must(other->Append(block, 2, 0));  // this block may extend beyond the target size
  CHECK(other->IsFull());
}

TEST_CASE("A segment is full when its ordinals are used up") {
  TestStore store;
  auto writer = store.Create(1);
  // The chunks are minimal: otherwise the bytes of the segment are used up before its ordinals.
  auto block_of = [&](uint32_t chunks) {
    PlainBlock plain;
    plain.records.assign(chunks, MakeChunk(1, 1).record);
    plain.plain.resize(chunks);
    return Must(store.codec.Encode(plain, kZstd3));
  };
  EncodedBlock block = block_of(4090);
  uint64_t sequence = 0;
  for (int i = 0; i < 256; ++i) Must(writer->Append(block, ++sequence, 0));
  REQUIRE(writer->size() < kMaxSegmentTargetSize);
  const uint32_t left = kMaxSegmentChunks - 256 * 4090;
  CHECK_FALSE(writer->IsFull());
  CHECK_FALSE(writer->HasRoomFor(block_of(left + 1)));
  REQUIRE_CODE(writer->Append(block_of(left + 1), sequence + 1, 0), kInvalidArgument);
  CHECK(writer->HasRoomFor(block_of(left)));
  Must(writer->Append(block_of(left), sequence + 1, 0));
  CHECK(writer->IsFull());
  REQUIRE_OK(writer->Seal());
  CHECK(Must(store.Open(1)->ReadFooter()).chunks.size() == kMaxSegmentChunks);
}

TEST_CASE("A target size beyond the range of block offsets is refused") {
  TestStore store;
  for (uint32_t size : {uint32_t{0}, kMinSegmentTargetSize - 1, kMaxSegmentTargetSize + 1}) {
    REQUIRE_CODE(SegmentWriter::Create(store.env, store.path, store.Identity(1), SegmentKind::kData,
                                       0, {.target_size = size}),
                 kInvalidArgument);
  }
}

TEST_CASE("Sequences that don't increase are refused") {
  TestStore store;
  auto writer = store.Create(1);
  REQUIRE_CODE(writer->Append(SmallBlock(store), 0, 0), kInvalidArgument);
  Must(writer->Append(SmallBlock(store), 5, 0));
  REQUIRE_CODE(writer->Append(SmallBlock(store), 5, 0), kInvalidArgument);
  Must(writer->Append(SmallBlock(store), 6, 0));
}

TEST_CASE("A block not made by the codec is refused") {
  TestStore store;
  auto writer = store.Create(1);
  EncodedBlock block = SmallBlock(store);
  block.payload.resize(block.plain_bytes + 1);
  REQUIRE_CODE(writer->Append(block, 1, 0), kInvalidArgument);
  REQUIRE_CODE(writer->Append(EncodedBlock(), 1, 0), kInvalidArgument);
}

TEST_CASE("Lookups in the open segment agree with the later footer") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  auto window = writer->Window(2, 100);
  CHECK(writer->FindBlock(0) == places[0]);
  CHECK(writer->FindBlock(3) == places[1]);
  CHECK(writer->FindBlock(7) == places[2]);
  CHECK_FALSE(writer->FindBlock(8).has_value());
  CHECK_FALSE(writer->FindChunk(8).has_value());
  CHECK(writer->Window(8, 1).empty());
  CHECK(writer->Window(0xffffffff, 0xffffffff).empty());
  REQUIRE_OK(writer->Seal());
  SegmentFooter footer = Must(store.Open(1)->ReadFooter());
  CHECK(footer.blocks == places);
  CHECK(window == std::vector<FooterChunk>(footer.chunks.begin() + 2, footer.chunks.end()));
  CHECK(writer->FindChunk(7) == footer.chunks[7]);
  ChunkRecord record = ChunksOf(kSmallSegment, 1)[0].record;
  CHECK(footer.chunks[3] == FooterChunk{record.name.Prefix64(), record.tag});
}

TEST_CASE("After a failed sync no more device calls are made") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  store.env.FailCall({.calls = SimCall::kSync, .code = StatusCode::kIoError});
  Status first = writer->Sync();
  REQUIRE_CODE(first, kIoError);
  uint64_t before = store.env.Calls(SimCall::kAny);
  for (int i = 0; i < 2; ++i) {
    CHECK(writer->Sync().ToString() == first.ToString());
    CHECK(writer->Seal().ToString() == first.ToString());
    CHECK(writer->Append(SmallBlock(store), 2, 0).status().ToString() == first.ToString());
  }
  CHECK(writer->failure().ToString() == first.ToString());
  CHECK(store.env.Calls(SimCall::kAny) == before);
  CHECK(writer->synced_size() == 0);
}

TEST_CASE("A full disk at a sync is a failed sync") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  store.env.FailCall({.calls = SimCall::kSync, .code = StatusCode::kNoSpace});
  REQUIRE_CODE(writer->Sync(), kNoSpace);
  REQUIRE_CODE(writer->Sync(), kNoSpace);
  REQUIRE_CODE(writer->Append(SmallBlock(store), 2, 0), kNoSpace);
}

TEST_CASE("A failed sync of the directory is a failed sync") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  store.env.FailCall({.calls = SimCall::kSyncDirectory});
  REQUIRE_CODE(writer->Sync(), kIoError);
  REQUIRE_CODE(writer->Sync(), kIoError);
  CHECK(writer->synced_size() == 0);
}

TEST_CASE("After a failed append nothing is appended or synced") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  store.env.FailCall({.calls = SimCall::kWrite, .code = StatusCode::kIoError, .bytes_written = 30});
  REQUIRE_CODE(writer->Append(SmallBlock(store), 2, 0), kIoError);
  CHECK(writer->chunk_count() == 1);
  uint64_t before = store.env.Calls(SimCall::kAny);
  REQUIRE_CODE(writer->Append(SmallBlock(store), 3, 0), kIoError);
  REQUIRE_CODE(writer->Sync(), kIoError);
  REQUIRE_CODE(writer->Seal(), kIoError);
  CHECK(store.env.Calls(SimCall::kAny) == before);
}

TEST_CASE(
    "After an append to a full disk the segment can be synced, and extended once there is room") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store, 1), 1, 0));
  uint64_t size = writer->size();
  store.env.FailCall({.calls = SimCall::kWrite, .code = StatusCode::kNoSpace, .bytes_written = 77});
  REQUIRE_CODE(writer->Append(SmallBlock(store, 2), 2, 0), kNoSpace);
  CHECK(writer->size() == size);
  CHECK(store.FileBytes(1).size() == size);
  REQUIRE_OK(writer->Sync());
  BlockPlace place = Must(writer->Append(SmallBlock(store, 3), 3, 0));
  CHECK(place == BlockPlace{static_cast<uint32_t>(size), 1});

  store.env.FailCall({.calls = SimCall::kWrite, .code = StatusCode::kNoSpace, .bytes_written = 5});
  REQUIRE_CODE(writer->Seal(), kNoSpace);
  CHECK_FALSE(writer->sealed());
  REQUIRE_OK(writer->Seal());
  RequireSame(*Must(store.Open(1)->ReadBlock(place.block_offset)), MakeChunks(3, {500}));
  CHECK(Must(store.Open(1)->ReadFooter()).chunks.size() == 2);
}

TEST_CASE("If torn bytes can't be removed after a full disk, the segment fails") {
  TestStore store;
  auto writer = store.Create(1);
  Must(writer->Append(SmallBlock(store), 1, 0));
  store.env.FailCall({.calls = SimCall::kWrite, .code = StatusCode::kNoSpace, .bytes_written = 77});
  store.env.FailCall({.calls = SimCall::kTruncate, .code = StatusCode::kIoError});
  REQUIRE_CODE(writer->Append(SmallBlock(store), 2, 0), kIoError);
  REQUIRE_CODE(writer->Sync(), kIoError);
}

TEST_CASE("A segment left open by a clean unmount continues at its end") {
  TestStore store;
  std::vector<BlockPlace> places;
  uint64_t length = 0;
  {
    auto writer = store.Create(1, SegmentKind::kRecipeNodes);
    places = AppendAll(*writer, store.codec, kSmallSegment);
    REQUIRE_OK(writer->Sync());
    length = writer->size();
  }
  std::string whole;
  {
    auto writer = Must(SegmentWriter::Resume(store.env, store.path, store.Identity(1), length));
    CHECK(writer->kind() == SegmentKind::kRecipeNodes);
    CHECK(writer->size() == length);
    CHECK(writer->synced_size() == length);
    CHECK(writer->last_sequence() == 1002);
    CHECK(writer->FindBlock(3) == places[1]);
    Must(writer->Append(SmallBlock(store), 2000, 9));
    REQUIRE_OK(writer->Seal());
    whole = store.FileBytes(1);
  }
  // The file is the same as if the writer had never been closed.
  TestStore other;
  auto writer = other.Create(1, SegmentKind::kRecipeNodes);
  AppendAll(*writer, other.codec, kSmallSegment);
  Must(writer->Append(SmallBlock(other), 2000, 9));
  REQUIRE_OK(writer->Seal());
  CHECK(other.FileBytes(1) == whole);
}

TEST_CASE("A segment without a block can be resumed") {
  TestStore store;
  REQUIRE_OK(store.Create(1)->Sync());
  auto writer =
      Must(SegmentWriter::Resume(store.env, store.path, store.Identity(1), kSegmentHeaderSize));
  CHECK(Must(writer->Append(SmallBlock(store), 1, 0)) == BlockPlace{kSegmentHeaderSize, 0});
}

TEST_CASE("A segment is resumed only if it is unchanged") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  uint64_t length = writer->size();
  writer.reset();
  auto resume = [&](uint64_t at) {
    return SegmentWriter::Resume(store.env, store.path, store.Identity(1), at);
  };
  REQUIRE_CODE(resume(length - 1), kCorruption);
  REQUIRE_CODE(resume(length + 1), kCorruption);
  REQUIRE_CODE(resume(places[2].block_offset), kCorruption);
  REQUIRE_OK(resume(length));
  store.FlipByte(1, 20);
  REQUIRE_CODE(resume(length), kCorruption);
  store.FlipByte(1, 20);
  store.FlipByte(1, places[1].block_offset + 60);
  REQUIRE_CODE(resume(length), kCorruption);
  REQUIRE_CODE(SegmentWriter::Resume(store.env, store.path, store.Identity(2), length), kNotFound);
}
