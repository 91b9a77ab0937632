// The zstd levels at which chunks are compressed when they are put, and when they are recompressed.
#include <array>
#include <map>
#include <string>

#include "store/base/random.h"
#include "store/segment/segment_reader.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

// Puts text of an artificial language, in which some words are far more frequent than others. Each
// compression level of the test compresses it to another size.
PutChunks PutText(ChunkStore& store, size_t count) {
  Random random(11);
  std::array<std::string, 3000> words;
  for (std::string& word : words) {
    for (uint64_t letters = 2 + random.Below(8); letters > 0; --letters)
      word += static_cast<char>('a' + random.Below(26));
    word += ' ';
  }
  PutChunks put;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    while (text.size() < 4000) text += words[random.Below(1 + random.Below(words.size()))];
    put.chunks.emplace_back(AsBytes(text).begin(), AsBytes(text).end());
  }
  REQUIRE_OK(TryPut(store, put));
  return put;
}

struct StoreOfLevel : StoreUnderTest {
  explicit StoreOfLevel(int level)
      : StoreUnderTest({.segment_bytes = 128u << 10,
                        .block_plain_bytes = 32u << 10,
                        .compression = {BlockCodecId::kZstd, level}}) {
    Open();
    put = PutText(chunks(), 300);
    Commit();
    chunks().WaitUntilSealed();
    Commit();
  }

  // True if all blocks of recompressed data segments, or of the others, are exactly as zstd makes
  // them at this level.
  bool AllAreOf(int level, bool recompressed) {
    const BlockCodec codec;
    size_t blocks = 0;
    for (const FoundBlock& found : AllBlocks(*this)) {
      if (found.kind != SegmentKind::kData) continue;
      if (committed().segments.at(found.segment).recompressed != recompressed) continue;
      auto reader = SegmentReader::Open(env(), path(), {identity().uuid, found.segment}, codec);
      REQUIRE_OK(reader);
      const auto block = (*reader)->ReadBlock(found.offset);
      REQUIRE_OK(block);
      PlainBlock plain;
      plain.records.assign((*block)->records().begin(), (*block)->records().end());
      for (size_t i = 0; i < (*block)->chunk_count(); ++i) {
        const ByteView chunk = (*block)->chunk(i);
        plain.plain.insert(plain.plain.end(), chunk.begin(), chunk.end());
      }
      const auto encoded = codec.Encode(std::move(plain), {BlockCodecId::kZstd, level});
      REQUIRE_OK(encoded);
      if (encoded->payload_checksum != found.head.payload_checksum) return false;
      ++blocks;
    }
    REQUIRE(blocks > 0);
    return true;
  }
  uint64_t stored_bytes() { return chunks().totals().stored_bytes; }

  PutChunks put;
};

}  // namespace

TEST_CASE("chunks are put at level 3 at most, and recompressed at the store's level") {
  std::map<int, uint64_t> put_bytes;
  std::map<int, uint64_t> recompressed_bytes;
  for (const int level : {1, 2, 3, 4, 15}) {
    INFO("level " << level);
    StoreOfLevel store(level);
    const int at_first = std::min(level, 3);
    CHECK(store.AllAreOf(at_first, /*recompressed=*/false));
    for (const int other : {1, 2, 3, 4, 15}) {
      if (other != at_first) CHECK_FALSE(store.AllAreOf(other, false));
    }
    put_bytes[level] = store.stored_bytes();

    const auto outcome = store.recompressor().Recompress();
    REQUIRE_OK(outcome);
    REQUIRE(outcome->segments > 2);
    REQUIRE(outcome->left == 0);
    CHECK(store.AllAreOf(level, /*recompressed=*/true));
    for (const int other : {1, 2, 3, 4, 15}) {
      if (other != level) CHECK_FALSE(store.AllAreOf(other, true));
    }
    recompressed_bytes[level] = store.stored_bytes();
    RequireAll(store.chunks(), store.put);
  }
  CHECK(put_bytes[3] < put_bytes[1]);
  CHECK(put_bytes[4] == put_bytes[3]);
  CHECK(put_bytes[15] == put_bytes[3]);
  CHECK(recompressed_bytes[3] < put_bytes[3]);
  CHECK(recompressed_bytes[15] < recompressed_bytes[3]);
}

}  // namespace siltfs::testing
