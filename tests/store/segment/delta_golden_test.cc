// A segment with deltas that was written when blocks with deltas and footers of version 2 became
// final. The current code must read it, and write the same tables. The zstd frames are only read,
// because another version of zstd may compress differently.
//
// `segment_test "[write-golden-deltas]"` rewrites the file. Use it only for a new format version,
// with a new name.
#include "store/env/posix_env.h"
#include "store/segment/block_io.h"
#include "store/segment/delta_payload.h"
#include "store/segment/segment_rewrite.h"
#include "tests/store/segment/delta_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr SegmentId kId = 0x405;

std::string GoldenPath() { return JoinPath(SILTFS_GOLDEN_DIRECTORY, "data-sealed-deltas.seg"); }

// Made by a formula alone. The bytes differ from chunk to chunk unless `like` is the same.
TestChunk GoldenChunk(uint32_t n, uint32_t like, uint32_t length) {
  TestChunk chunk;
  for (size_t i = 0; i < ChunkName::kSize; ++i)
    chunk.record.name.bytes[i] = static_cast<uint8_t>(0x10 * n + i);
  chunk.record.tag = 0x0111111111111111 * (n + 1);
  chunk.record.length = length;
  uint32_t state = 1 + like;
  for (uint32_t i = 0; i < length; ++i) {
    state = state * 1664525 + 1013904223;
    chunk.bytes.push_back(static_cast<uint8_t>(state >> 24));
  }
  chunk.bytes[length / 2] = static_cast<uint8_t>(n);
  return chunk;
}

const TestChunk kBases[] = {GoldenChunk(12, 1, 400), GoldenChunk(11, 2, 500)};
// The deltas are the chunks 1, 3 and 4; chunk 4 is alone in its block.
const TestChunk kChunks[] = {GoldenChunk(0, 7, 300), GoldenChunk(1, 1, 400), GoldenChunk(2, 8, 90),
                             GoldenChunk(3, 2, 480), GoldenChunk(4, 1, 390)};

MemoryBases Bases() {
  MemoryBases bases;
  for (const TestChunk& base : kBases) bases.Add(base);
  return bases;
}

std::string WriteToday() {
  TestStore store;
  auto writer = Must(
      SegmentWriter::Create(store.env, store.path, store.Identity(kId), SegmentKind::kData, 41));
  Must(writer->Append(Encode(store.codec, {kChunks[0], kChunks[1], kChunks[2], kChunks[3]}, kPlain),
                      (uint64_t{1} << 40) + 5, 42));
  Must(writer->Append(Encode(store.codec, {kChunks[4]}, kPlain), (uint64_t{1} << 40) + 7, 43));
  REQUIRE_OK(writer->Seal());
  MemoryBases bases;
  ListedBases chooser(bases);
  chooser.Offer(kChunks[1], kBases[0]);
  chooser.Offer(kChunks[3], kBases[1]);
  chooser.Offer(kChunks[4], kBases[0]);
  REQUIRE(
      Must(PrepareRewrite(store.env, store.path, store.segments, store.Identity(kId), store.codec,
                          {.compression = kZstd3,
                           .block_plain_bytes = 100,
                           .bases = &bases,
                           .chooser = &chooser}))
          .deltas == 3);
  REQUIRE_OK(store.Install(kId));
  return store.FileBytes(kId);
}

struct GoldenStore : TestStore {
  GoldenStore() {
    bytes = Must(ReadWholeFile(*NewPosixEnv(), GoldenPath(), 1U << 20));
    SetFileBytes(kId, bytes);
    reader = Open(kId);
  }
  std::string bytes;
  std::unique_ptr<SegmentReader> reader;
};

}  // namespace

TEST_CASE("A segment with deltas of the final format is read as it was written") {
  GoldenStore store;
  MemoryBases bases = Bases();
  const SegmentFooter footer = Must(store.reader->ReadFooter());
  CHECK(footer.trailer.base_count == 2);
  CHECK(footer.bases == std::vector<BaseRef>{RefOf(kBases[1]), RefOf(kBases[0])});
  CHECK(Must(store.reader->ReadBaseTable()) == footer.bases);
  REQUIRE(footer.blocks.size() == 2);
  const auto first =
      Must(store.reader->ReadBlock(footer.blocks[0].block_offset, kUsualBlockBytes, &bases));
  const auto second =
      Must(store.reader->ReadBlock(footer.blocks[1].block_offset, kUsualBlockBytes, &bases));
  RequireSame(*first, {kChunks[0], kChunks[1], kChunks[2], kChunks[3]});
  RequireSame(*second, {kChunks[4]});
  CHECK(first->head().codec == BlockCodecId::kZstdDelta);
  CHECK(first->bases() == std::vector<DeltaBase>{{1, RefOf(kBases[0])}, {3, RefOf(kBases[1])}});
  CHECK(second->bases() == std::vector<DeltaBase>{{0, RefOf(kBases[0])}});
}

TEST_CASE("The tables of deltas and of bases have the same bytes as when they became final") {
  GoldenStore store;
  SegmentFooter footer = Must(store.reader->ReadFooter());
  for (const BlockPlace& place : footer.blocks) {
    const StoredBlock block = Must(ReadStoredBlockAt(store.reader->file(), store.Identity(kId),
                                                     store.codec, place.block_offset));
    const DeltaPayload parts = Must(DecodeDeltaPayload(block.head, block.payload()));
    std::vector<DeltaFrame> deltas;
    for (size_t i = 0; i < parts.deltas.size(); ++i) {
      deltas.push_back({parts.deltas[i], Bytes(parts.frames[i].begin(), parts.frames[i].end())});
    }
    const Bytes again = EncodeDeltaPayload(deltas, parts.whole_codec, parts.whole);
    CHECK(AsText(again) == AsText(block.payload()));
  }
  CHECK(EncodeSegmentFooter(footer, store.Identity(kId)) ==
        store.bytes.substr(footer.trailer.data_end));
}

TEST_CASE("Write the golden segment with deltas again", "[.][write-golden-deltas]") {
  REQUIRE_OK(ReplaceFile(*NewPosixEnv(), GoldenPath(), AsBytes(WriteToday())));
}
