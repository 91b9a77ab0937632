// Segments that were written when the format became final. The current code must read them, and
// write the same bytes. Compressed segments are only read, because another version of zstd may
// compress differently.
//
// `segment_test "[write-golden]"` rewrites the files. Use it only for a new format version, with
// new names.
#include "store/env/posix_env.h"
#include "store/segment/segment_scan.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr uint32_t kLengths[] = {90, 1, 160, 33, 40};

// Made by a formula alone, so that only the format can change these files.
TestChunk GoldenChunk(uint32_t n) {
  TestChunk chunk;
  for (size_t i = 0; i < ChunkName::kSize; ++i)
    chunk.record.name.bytes[i] = static_cast<uint8_t>(0x10 * n + i);
  chunk.record.tag = 0x1111111111111111 * (n + 1);
  chunk.record.length = kLengths[n];
  chunk.record.salt = n == 3 ? 2 : 0;
  for (uint32_t i = 0; i < kLengths[n]; ++i) chunk.bytes.push_back(static_cast<uint8_t>(i / 8 + n));
  return chunk;
}

struct Golden {
  std::string name;
  SegmentId id;
  SegmentKind kind;
  Compression compression;
  bool sealed;
};

const Golden kPlainGoldens[] = {
    {"data-sealed-plain.seg", 0x401, SegmentKind::kData, kPlain, true},
    {"nodes-sealed-plain.seg", 0x402, SegmentKind::kRecipeNodes, kPlain, true},
    {"data-open-plain.seg", 0x403, SegmentKind::kData, kPlain, false},
};
const Golden kZstdGolden = {"data-sealed-zstd.seg", 0x404, SegmentKind::kData, kZstd3, true};

std::string GoldenPath(const Golden& golden) {
  return JoinPath(SILTFS_GOLDEN_DIRECTORY, golden.name);
}

std::string ReadGolden(const Golden& golden) {
  return Must(ReadWholeFile(*NewPosixEnv(), GoldenPath(golden), 1U << 20));
}

// Three chunks in the first block, two in the second.
std::string WriteToday(const Golden& golden) {
  TestStore store;
  auto writer = Must(
      SegmentWriter::Create(store.env, store.path, store.Identity(golden.id), golden.kind, 41));
  Must(writer->Append(
      Encode(store.codec, {GoldenChunk(0), GoldenChunk(1), GoldenChunk(2)}, golden.compression),
      (uint64_t{1} << 40) + 5, 42));
  Must(writer->Append(Encode(store.codec, {GoldenChunk(3), GoldenChunk(4)}, golden.compression),
                      (uint64_t{1} << 40) + 7, 43));
  if (golden.sealed) REQUIRE_OK(writer->Seal());
  return store.FileBytes(golden.id);
}

void RequireReadsAsWritten(const Golden& golden) {
  TestStore store;
  store.SetFileBytes(golden.id, ReadGolden(golden));
  auto reader = store.Open(golden.id);
  CHECK(Must(reader->ReadHeader()) == SegmentHeader{golden.kind, store.Identity(golden.id), 41});
  std::vector<uint32_t> offsets;
  auto scanned = ScanBlocks(reader->file(), store.Identity(golden.id), {.verify_payloads = true},
                            [&](const BlockHead& head, uint32_t offset) {
                              CHECK(head.codec == golden.compression.codec);
                              offsets.push_back(offset);
                              return Status::Ok();
                            });
  REQUIRE_OK(scanned);
  CHECK(scanned->torn == golden.sealed);  // the footer is not a block
  REQUIRE(offsets.size() == 2);
  auto first = Must(reader->ReadBlock(offsets[0]));
  auto second = Must(reader->ReadBlock(offsets[1]));
  RequireSame(*first, {GoldenChunk(0), GoldenChunk(1), GoldenChunk(2)});
  RequireSame(*second, {GoldenChunk(3), GoldenChunk(4)});
  CHECK(second->head().first_ordinal == 3);
  CHECK(second->head().sequence == (uint64_t{1} << 40) + 7);
  CHECK(second->head().last_commit == 43);
  CHECK(Must(reader->IsSealed()) == golden.sealed);
  if (!golden.sealed) return;
  SegmentFooter footer = Must(reader->ReadFooter());
  CHECK(footer.trailer.kind == golden.kind);
  CHECK(footer.trailer.first_sequence == (uint64_t{1} << 40) + 5);
  CHECK(footer.trailer.last_sequence == (uint64_t{1} << 40) + 7);
  CHECK(footer.trailer.plain_bytes == 324);
  CHECK(footer.blocks == std::vector<BlockPlace>{{offsets[0], 0}, {offsets[1], 3}});
  REQUIRE(footer.chunks.size() == 5);
  CHECK(footer.chunks[1] == FooterChunk{0x1011121314151617, 0x2222222222222222});
}

}  // namespace

TEST_CASE("Segments of the final format are read as they were written") {
  for (const Golden& golden : kPlainGoldens) {
    CAPTURE(golden.name);
    RequireReadsAsWritten(golden);
  }
  RequireReadsAsWritten(kZstdGolden);
}

TEST_CASE("The writer makes the same bytes as when the format became final") {
  for (const Golden& golden : kPlainGoldens) {
    CAPTURE(golden.name);
    CHECK(WriteToday(golden) == ReadGolden(golden));
  }
}

TEST_CASE("Write the golden segments again", "[.][write-golden]") {
  auto env = NewPosixEnv();
  for (const Golden& golden : kPlainGoldens)
    REQUIRE_OK(ReplaceFile(*env, GoldenPath(golden), AsBytes(WriteToday(golden))));
  REQUIRE_OK(ReplaceFile(*env, GoldenPath(kZstdGolden), AsBytes(WriteToday(kZstdGolden))));
}
