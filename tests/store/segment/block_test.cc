// Collecting, encoding and decoding blocks.
#include "store/segment/block.h"

#include <algorithm>
#include <thread>

#include "store/base/checksum.h"
#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

BlockHead HeadFor(const EncodedBlock& block) {
  BlockHead head;
  head.codec = block.codec;
  head.records = block.records;
  head.plain_bytes = block.plain_bytes;
  head.payload_bytes = static_cast<uint32_t>(block.payload.size());
  head.payload_checksum = block.payload_checksum;
  return head;
}

}  // namespace

TEST_CASE("A builder collects chunks in order and is empty after Take") {
  BlockBuilder builder;
  auto chunks = MakeChunks(1, {10, 20});
  for (const TestChunk& chunk : chunks) REQUIRE_OK(builder.Add(chunk.record, chunk.bytes));
  CHECK(builder.chunk_count() == 2);
  CHECK(builder.plain_bytes() == 30);
  PlainBlock block = builder.Take();
  CHECK(block.records == std::vector<ChunkRecord>{chunks[0].record, chunks[1].record});
  CHECK(block.plain.size() == 30);
  CHECK(builder.empty());
  CHECK(builder.plain_bytes() == 0);
}

TEST_CASE("A builder refuses what the format can't hold") {
  BlockBuilder builder;
  TestChunk chunk = MakeChunk(1, 10);
  REQUIRE_CODE(builder.Add(chunk.record, ByteView(chunk.bytes).first(9)), kInvalidArgument);
  ChunkRecord empty = chunk.record;
  empty.length = 0;
  REQUIRE_CODE(builder.Add(empty, {}), kInvalidArgument);

  TestChunk large = MakeChunk(2, kMaxBlockPlainBytes);
  REQUIRE_OK(builder.Add(large.record, large.bytes));
  CHECK_FALSE(builder.Fits(1));
  REQUIRE_CODE(builder.Add(chunk.record, chunk.bytes), kInvalidArgument);
  builder.Clear();
  CHECK_FALSE(builder.Fits(kMaxBlockPlainBytes + 1));

  TestChunk tiny = MakeChunk(3, 1);
  for (uint32_t i = 0; i < kMaxBlockChunks; ++i) REQUIRE_OK(builder.Add(tiny.record, tiny.bytes));
  REQUIRE_CODE(builder.Add(tiny.record, tiny.bytes), kInvalidArgument);
}

TEST_CASE("A compressible block is compressed and comes back") {
  BlockCodec codec;
  auto chunks = MakeChunks(1, {8000, 9000, 10000});
  for (int level : {-5, 1, 3, 19}) {
    CAPTURE(level);
    EncodedBlock block = Encode(codec, chunks, {BlockCodecId::kZstd, level});
    CHECK(block.codec == BlockCodecId::kZstd);
    CHECK(block.payload.size() < 27000 / 2);
    CHECK(block.plain_bytes == 27000);
    CHECK(block.payload_checksum == Checksum(block.payload));
    BlockHead head = HeadFor(block);
    DecodedBlock decoded(head, Must(codec.DecodePayload(head, block.payload)));
    RequireSame(decoded, chunks);
  }
}

TEST_CASE("A block is stored uncompressed if compression is off or saves too little") {
  BlockCodec codec;
  auto text = MakeChunks(1, {5000});
  auto noise = MakeChunks(1, {5000}, false);
  for (const EncodedBlock& block : {Encode(codec, text, kPlain), Encode(codec, noise, kZstd3)}) {
    CHECK(block.codec == BlockCodecId::kNone);
    CHECK(block.payload.size() == 5000);
  }
  // A saving of 2 % is too little, 8 % is enough.
  for (uint32_t zeros : {100U, 400U}) {
    TestChunk chunk = MakeChunk(1, 5000, false);
    std::fill_n(chunk.bytes.begin(), zeros, uint8_t{0});
    CHECK(Encode(codec, {chunk}).codec ==
          (zeros == 400 ? BlockCodecId::kZstd : BlockCodecId::kNone));
  }
}

TEST_CASE("Chunks too small for any compression come back") {
  BlockCodec codec;
  for (uint32_t length = 1; length < 40; ++length) {
    auto chunks = MakeChunks(length, {length});
    EncodedBlock block = Encode(codec, chunks);
    BlockHead head = HeadFor(block);
    RequireSame(DecodedBlock(head, Must(codec.DecodePayload(head, block.payload))), chunks);
  }
}

TEST_CASE("Blocks and levels beyond the limits are not encoded") {
  BlockCodec codec;
  REQUIRE_CODE(codec.Encode(PlainBlock(), kZstd3), kInvalidArgument);
  PlainBlock wrong_length = Collect(MakeChunks(1, {10}));
  wrong_length.plain.push_back(0);
  REQUIRE_CODE(codec.Encode(wrong_length, kZstd3), kInvalidArgument);
  PlainBlock too_large = Collect(MakeChunks(1, {10}));
  too_large.records[0].length = kMaxBlockPlainBytes + 1;
  too_large.plain.resize(kMaxBlockPlainBytes + 1);
  REQUIRE_CODE(codec.Encode(too_large, kZstd3), kInvalidArgument);
  REQUIRE_CODE(ValidateCompression({BlockCodecId::kZstd, 23}), kInvalidArgument);
  REQUIRE_CODE(ValidateCompression({static_cast<BlockCodecId>(9), 3}), kInvalidArgument);
  REQUIRE_OK(ValidateCompression({BlockCodecId::kNone, 99}));
}

TEST_CASE("A payload that doesn't decompress to what the head says is corruption") {
  BlockCodec codec;
  EncodedBlock block = Encode(codec, MakeChunks(1, {8000}));
  BlockHead head = HeadFor(block);
  head.plain_bytes = 7999;
  REQUIRE_CODE(codec.DecodePayload(head, block.payload), kCorruption);
  head.plain_bytes = 8001;
  REQUIRE_CODE(codec.DecodePayload(head, block.payload), kCorruption);
  head.plain_bytes = 8000;
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    Bytes payload = block.payload;
    payload[random.Below(payload.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
    // DecodePayload must not crash or return another size; the checksum is checked elsewhere.
    auto plain = codec.DecodePayload(head, payload);
    if (plain.ok()) CHECK(plain->size() == 8000);
  }
}

TEST_CASE("One codec encodes and decodes in many threads at once") {
  BlockCodec codec;
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < good.size(); ++t) {
    threads.emplace_back([&codec, &good, t] {
      for (uint64_t i = 0; i < 20; ++i) {
        TestChunk chunk = MakeChunk(t * 1000 + i, 20000);
        auto block = codec.Encode({{chunk.record}, chunk.bytes}, kZstd3);
        if (!block.ok()) continue;
        auto plain = codec.DecodePayload(HeadFor(*block), block->payload);
        if (plain.ok() && std::ranges::equal(*plain, chunk.bytes)) ++good[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(4, 20));
}
