// Blocks in which some chunks are deltas: encoding, decoding, and payloads that no writer produces.
#include <algorithm>
#include <functional>

#include "store/base/checksum.h"
#include "store/segment/delta_payload.h"
#include "tests/store/segment/delta_test_support.h"

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

DeltaFrame MakeDelta(const BlockCodec& codec, uint32_t position, const TestChunk& chunk,
                     const TestChunk& base, int level = 3) {
  DeltaFrame delta{{position, RefOf(base)},
                   Must(codec.EncodeDelta(chunk.bytes, base.bytes, level, chunk.bytes.size()))};
  REQUIRE_FALSE(delta.frame.empty());
  return delta;
}

// Five chunks; the second and the last one are deltas against one base, the fourth one against
// another base.
struct Mixed {
  explicit Mixed(bool compressible = true)
      : base(MakeChunk(1, 9000, false)), other(MakeChunk(2, 7000, false)) {
    chunks = {MakeChunk(11, 5000, compressible), MakeSimilar(base, 12),
              MakeChunk(13, 3000, compressible), MakeSimilar(other, 14), MakeSimilar(base, 15)};
    deltas = {MakeDelta(codec, 1, chunks[1], base), MakeDelta(codec, 3, chunks[3], other),
              MakeDelta(codec, 4, chunks[4], base)};
    block = Must(codec.EncodeWithDeltas(Collect(chunks), deltas, kZstd3));
    REQUIRE(block.codec == BlockCodecId::kZstdDelta);
    bases.Add(base);
    bases.Add(other);
  }

  Result<DecodedBlockPtr> Decode(BaseSource* source) const {
    return codec.Decode(HeadFor(block), block.payload, source);
  }
  // Decodes a changed payload. The checksum is not compared.
  Result<DecodedBlockPtr> DecodeChanged(const Bytes& payload) {
    BlockHead head = HeadFor(block);
    head.payload_bytes = static_cast<uint32_t>(payload.size());
    return codec.Decode(head, payload, &bases);
  }

  BlockCodec codec;
  TestChunk base;
  TestChunk other;
  std::vector<TestChunk> chunks;
  std::vector<DeltaFrame> deltas;
  EncodedBlock block;
  MemoryBases bases;
};

void SetU32(Bytes& bytes, size_t offset, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes.at(offset + i) = static_cast<uint8_t>(value >> (8 * i));
}

constexpr size_t kSecondEntry = kDeltaHeaderSize + kDeltaTableEntrySize;

}  // namespace

TEST_CASE("A block with deltas comes back when its bases are given") {
  const bool compressible = GENERATE(true, false);
  Mixed mixed(compressible);
  CHECK(mixed.block.payload.size() < (compressible ? 3500 : 9000));
  const DecodedBlockPtr block = Must(mixed.Decode(&mixed.bases));
  RequireSame(*block, mixed.chunks);
  CHECK_FALSE(block->any_missing());
  for (size_t i = 0; i < 5; ++i) CHECK(block->missing(i) == nullptr);
  CHECK(block->bases() == std::vector<DeltaBase>{{1, RefOf(mixed.base)},
                                                 {3, RefOf(mixed.other)},
                                                 {4, RefOf(mixed.base)}});
}

TEST_CASE("Each base of a block is read once") {
  Mixed mixed;
  REQUIRE_OK(mixed.Decode(&mixed.bases));
  CHECK(mixed.bases.asked.size() == 2);
}

TEST_CASE("Without a source of bases exactly the deltas of a block are missing") {
  Mixed mixed;
  const DecodedBlockPtr block = Must(mixed.Decode(nullptr));
  CHECK(block->any_missing());
  CHECK(block->bases().size() == 3);
  for (size_t i = 0; i < 5; ++i) {
    const bool whole = i == 0 || i == 2;
    CHECK(AsText(block->chunk(i)) == (whole ? AsText(mixed.chunks[i].bytes) : ""));
    REQUIRE((block->missing(i) == nullptr) == whole);
    if (!whole) CHECK(block->missing(i)->Is(StatusCode::kNotFound));
  }
  // The missing chunks take no memory.
  CHECK(block->memory_bytes() < 8000 + 2000);
}

TEST_CASE("A delta of a block that was decoded without bases is inflated alone") {
  Mixed mixed;
  const DecodedBlockPtr block = Must(mixed.Decode(nullptr));
  for (const size_t i : {4u, 1u, 3u}) {
    mixed.bases.asked.clear();
    const Buffer chunk = Must(mixed.codec.Inflate(*block, i, mixed.bases));
    CHECK(AsText(chunk) == AsText(mixed.chunks[i].bytes));
    CHECK(mixed.bases.asked == std::vector<BaseRef>{RefOf(i == 3 ? mixed.other : mixed.base)});
  }
  for (const size_t i : {0u, 2u, 5u}) {
    REQUIRE_CODE(mixed.codec.Inflate(*block, i, mixed.bases), kInvalidArgument);
  }
  const DecodedBlockPtr inflated = Must(mixed.Decode(&mixed.bases));
  REQUIRE_CODE(mixed.codec.Inflate(*inflated, 1, mixed.bases), kInvalidArgument);
}

TEST_CASE("A delta that is inflated alone never yields wrong bytes") {
  Mixed mixed;
  const DecodedBlockPtr block = Must(mixed.Decode(nullptr));
  Bytes& bytes = mixed.bases.bases[RefOf(mixed.base)];
  StatusCode expected = StatusCode::kCorruption;
  SECTION("one byte that the delta copies") { bytes[4000] ^= 1; }
  SECTION("shorter") { bytes.pop_back(); }
  SECTION("longer at the beginning") { bytes.insert(bytes.begin(), 0); }
  SECTION("a base that cannot be read") {
    expected = StatusCode::kIoError;
    mixed.bases.failures[RefOf(mixed.base)] = expected;
  }
  const Status status = mixed.codec.Inflate(*block, 1, mixed.bases).status();
  CHECK(status.Is(expected));
  const std::string text = status.ToString();
  CHECK(text.find(mixed.base.record.name.ToHex()) != std::string::npos);
  CHECK(text.find(mixed.chunks[1].record.name.ToHex()) != std::string::npos);
  REQUIRE_OK(mixed.codec.Inflate(*block, 3, mixed.bases));
}

TEST_CASE("A base that cannot be read costs only its dependents, and its failure is kept") {
  const auto code = GENERATE(StatusCode::kIoError, StatusCode::kNotFound, StatusCode::kCorruption);
  Mixed mixed;
  mixed.bases.failures[RefOf(mixed.base)] = code;
  const DecodedBlockPtr block = Must(mixed.Decode(&mixed.bases));
  CHECK(block->any_missing());
  for (const size_t i : {0u, 2u, 3u}) {
    CHECK(AsText(block->chunk(i)) == AsText(mixed.chunks[i].bytes));
    CHECK(block->missing(i) == nullptr);
  }
  for (const size_t i : {1u, 4u}) {
    CHECK(block->chunk(i).empty());
    REQUIRE(block->missing(i) != nullptr);
    CHECK(block->missing(i)->Is(code));
    const std::string text = block->missing(i)->ToString();
    CHECK(text.find(mixed.base.record.name.ToHex()) != std::string::npos);
    CHECK(text.find(mixed.chunks[i].record.name.ToHex()) != std::string::npos);
    CHECK(text.find("/bases") != std::string::npos);
  }
}

TEST_CASE("A base with wrong bytes never yields wrong bytes of a chunk") {
  Mixed mixed;
  Bytes& bytes = mixed.bases.bases[RefOf(mixed.base)];
  SECTION("one byte that a delta copies") { bytes[4000] ^= 1; }
  SECTION("shorter") { bytes.pop_back(); }
  SECTION("longer at the end") { bytes.push_back(0); }
  // zstd counts offsets from the end of the prefix, so it does not notice this.
  SECTION("longer at the beginning") { bytes.insert(bytes.begin(), 0); }
  SECTION("empty") { bytes.clear(); }
  SECTION("other bytes") { bytes = MakeChunk(77, 9000, false).bytes; }
  const DecodedBlockPtr block = Must(mixed.Decode(&mixed.bases));
  for (const size_t i : {1u, 4u}) {
    CHECK(block->chunk(i).empty());
    REQUIRE(block->missing(i) != nullptr);
    CHECK(block->missing(i)->Is(StatusCode::kCorruption));
  }
  CHECK(AsText(block->chunk(3)) == AsText(mixed.chunks[3].bytes));
}

TEST_CASE("A block in which every chunk is a delta comes back") {
  BlockCodec codec;
  MemoryBases bases;
  std::vector<TestChunk> chunks;
  std::vector<DeltaFrame> deltas;
  for (uint32_t i = 0; i < 40; ++i) {
    const TestChunk base = MakeChunk(100 + i, 1000 + i, false);
    bases.Add(base);
    chunks.push_back(MakeSimilar(base, 200 + i));
    deltas.push_back(MakeDelta(codec, i, chunks[i], base));
  }
  const EncodedBlock block = Must(codec.EncodeWithDeltas(Collect(chunks), deltas, kZstd3));
  REQUIRE(block.codec == BlockCodecId::kZstdDelta);
  RequireSame(*Must(codec.Decode(HeadFor(block), block.payload, &bases)), chunks);
  CHECK(Must(codec.Decode(HeadFor(block), block.payload, nullptr))->any_missing());
}

TEST_CASE("The whole length of the largest base serves the whole length of the largest chunk") {
  BlockCodec codec;
  const TestChunk base = MakeChunk(1, kMaxBlockPlainBytes, false);
  // The chunk ends with the first bytes of its base, so that the match is as far away as possible.
  TestChunk chunk = MakeChunk(2, kMaxBlockPlainBytes, false);
  constexpr size_t kSame = 512 << 10;
  std::copy_n(base.bytes.begin(), kSame, chunk.bytes.end() - kSame);
  MemoryBases bases;
  bases.Add(base);
  for (const int level : {3, 12}) {
    CAPTURE(level);
    const DeltaFrame delta = MakeDelta(codec, 0, chunk, base, level);
    CHECK(delta.frame.size() < kMaxBlockPlainBytes - kSame + (64 << 10));
    const EncodedBlock block = Must(codec.EncodeWithDeltas(Collect({chunk}), {delta}, kZstd3));
    RequireSame(*Must(codec.Decode(HeadFor(block), block.payload, &bases)), {chunk});
  }
}

TEST_CASE("Deltas of all lengths come back") {
  BlockCodec codec;
  for (const uint32_t length :
       {1u, 2u, 7u, 8u, 9u, 63u, 255u, 256u, 257u, 1023u, 65535u, 65537u, 131072u, 1u << 20}) {
    for (const uint32_t base_length : {1u, 8u, 300u, 70000u, 1u << 20}) {
      CAPTURE(length, base_length);
      const TestChunk base = MakeChunk(base_length, base_length);
      TestChunk chunk = MakeChunk(length + 1, length);
      std::copy_n(base.bytes.begin(), std::min(length, base_length) / 2, chunk.bytes.begin());
      // The largest bound has room for a frame of any chunk: a tiny delta is larger than its chunk.
      const Bytes frame = Must(codec.EncodeDelta(chunk.bytes, base.bytes, 3, length));
      if (frame.empty()) {
        CHECK(length < 300);
        continue;
      }
      TestChunk filler = MakeChunk(9, 5000);
      MemoryBases bases;
      bases.Add(base);
      const EncodedBlock block = Must(codec.EncodeWithDeltas(
          Collect({chunk, filler}), {DeltaFrame{{0, RefOf(base)}, frame}}, kZstd3));
      REQUIRE(block.codec == BlockCodecId::kZstdDelta);
      RequireSame(*Must(codec.Decode(HeadFor(block), block.payload, &bases)), {chunk, filler});
    }
  }
}

TEST_CASE("A base that begins like a dictionary of zstd is a plain prefix") {
  BlockCodec codec;
  TestChunk base = MakeChunk(1, 4000, false);
  const Bytes magic = {0x37, 0xa4, 0x30, 0xec};
  std::copy(magic.begin(), magic.end(), base.bytes.begin());
  const TestChunk chunk = MakeSimilar(base, 2);
  MemoryBases bases;
  bases.Add(base);
  const DeltaFrame delta = MakeDelta(codec, 0, chunk, base);
  CHECK(delta.frame.size() < 200);
  const EncodedBlock block = Must(codec.EncodeWithDeltas(Collect({chunk}), {delta}, kZstd3));
  RequireSame(*Must(codec.Decode(HeadFor(block), block.payload, &bases)), {chunk});
}

TEST_CASE("A delta leaves no trace in the next use of its context") {
  Mixed mixed;
  REQUIRE_OK(mixed.Decode(&mixed.bases));
  const auto chunks = MakeChunks(50, {9000, 4000});
  const EncodedBlock fresh = Encode(BlockCodec(), chunks);
  const EncodedBlock block = Encode(mixed.codec, chunks);
  CHECK(block.payload == fresh.payload);
  RequireSame(*Must(mixed.codec.Decode(HeadFor(block), block.payload)), chunks);
}

TEST_CASE("A delta larger than the bound, or than any use, is not made") {
  BlockCodec codec;
  const TestChunk base = MakeChunk(1, 8000, false);
  const TestChunk similar = MakeSimilar(base, 2);
  const size_t size = Must(codec.EncodeDelta(similar.bytes, base.bytes, 3, 8000)).size();
  CHECK(size < 200);
  CHECK(Must(codec.EncodeDelta(similar.bytes, base.bytes, 3, size)).size() == size);
  CHECK(Must(codec.EncodeDelta(similar.bytes, base.bytes, 3, size - 1)).empty());
  CHECK(Must(codec.EncodeDelta(similar.bytes, base.bytes, 3, 0)).empty());
  const TestChunk noise = MakeChunk(3, 8000, false);
  CHECK(Must(codec.EncodeDelta(noise.bytes, base.bytes, 3, SIZE_MAX)).empty());
  REQUIRE_CODE(codec.EncodeDelta({}, base.bytes, 3, 100), kInvalidArgument);
  REQUIRE_CODE(codec.EncodeDelta(similar.bytes, {}, 3, 100), kInvalidArgument);
  REQUIRE_CODE(codec.EncodeDelta(similar.bytes, base.bytes, 23, 100), kInvalidArgument);
  const Bytes large(kMaxBlockPlainBytes + 1);
  REQUIRE_CODE(codec.EncodeDelta(large, base.bytes, 3, 100), kInvalidArgument);
  REQUIRE_CODE(codec.EncodeDelta(similar.bytes, large, 3, 100), kInvalidArgument);
}

TEST_CASE("A block whose deltas save nothing is encoded without them") {
  BlockCodec codec;
  const TestChunk base = MakeChunk(1, 60, false);
  const TestChunk chunk = MakeSimilar(base, 2, 1);
  const DeltaFrame delta = MakeDelta(codec, 0, chunk, base);
  const EncodedBlock block = Must(codec.EncodeWithDeltas(Collect({chunk}), {delta}, kZstd3));
  CHECK(block.codec == BlockCodecId::kNone);
  RequireSame(*Must(codec.Decode(HeadFor(block), block.payload)), {chunk});
  // Nothing is a delta.
  const EncodedBlock none = Must(codec.EncodeWithDeltas(Collect({chunk}), {}, kZstd3));
  CHECK(none.codec == BlockCodecId::kNone);
}

TEST_CASE("Deltas out of order or outside of the block are not encoded") {
  Mixed mixed;
  std::vector<DeltaFrame> deltas = mixed.deltas;
  SECTION("order") { std::swap(deltas[0], deltas[1]); }
  SECTION("twice") { deltas[1].delta.position = 1; }
  SECTION("outside") { deltas[2].delta.position = 5; }
  REQUIRE_CODE(mixed.codec.EncodeWithDeltas(Collect(mixed.chunks), deltas, kZstd3),
               kInvalidArgument);
}

TEST_CASE("The payload of a block with deltas is decoded as it was encoded") {
  const Mixed mixed;
  const DeltaPayload payload = Must(DecodeDeltaPayload(HeadFor(mixed.block), mixed.block.payload));
  REQUIRE(payload.deltas.size() == 3);
  CHECK(payload.whole_plain == 8000);
  std::vector<DeltaFrame> again;
  for (size_t i = 0; i < payload.deltas.size(); ++i) {
    again.push_back({payload.deltas[i], Bytes(payload.frames[i].begin(), payload.frames[i].end())});
    CHECK(again[i].frame == mixed.deltas[i].frame);
  }
  CHECK(EncodeDeltaPayload(again, payload.whole_codec, payload.whole) == mixed.block.payload);
}

TEST_CASE("A payload with a delta table that no writer produces is refused") {
  Mixed mixed;
  const auto refused = [&](const std::function<void(Bytes&)>& change) {
    Bytes payload = mixed.block.payload;
    change(payload);
    REQUIRE_CODE(mixed.DecodeChanged(payload), kCorruption);
  };
  REQUIRE_OK(mixed.DecodeChanged(mixed.block.payload));
  // The number of deltas.
  for (const uint32_t count : {0u, 2u, 4u, 5u, 6u, 4096u, 0x10000000u, UINT32_MAX})
    refused([=](Bytes& payload) { SetU32(payload, 0, count); });
  // The bytes of the whole chunks.
  for (const uint32_t bytes : {0u, 1u, 8000u, 0x7fffffffu, UINT32_MAX})
    refused([=](Bytes& payload) { SetU32(payload, 8, bytes); });
  // Positions: twice, out of order, outside of the block. The first one is 1.
  for (const uint32_t position : {0u, 1u, 4u, 5u, 4096u, UINT32_MAX})
    refused([=](Bytes& payload) { SetU32(payload, kSecondEntry, position); });
  // The bytes of a delta.
  for (const uint32_t bytes : {0u, 1u, 0x7fffffffu, UINT32_MAX})
    refused([=](Bytes& payload) { SetU32(payload, kSecondEntry + 4, bytes); });
  // The length of a base.
  for (const uint32_t length : {0u, kMaxBlockPlainBytes + 1, kMaxChunkLength + 1, UINT32_MAX})
    refused([=](Bytes& payload) { SetU32(payload, kSecondEntry + 36, length); });
  // A chunk that is its own base.
  refused([&](Bytes& payload) {
    const ChunkRecord& record = mixed.chunks[3].record;
    std::copy(record.name.bytes.begin(), record.name.bytes.end(),
              payload.begin() + kSecondEntry + 8);
    SetU32(payload, kSecondEntry + 28, static_cast<uint32_t>(record.tag));
    SetU32(payload, kSecondEntry + 32, static_cast<uint32_t>(record.tag >> 32));
  });
  refused([](Bytes& payload) { payload.push_back(0); });
  for (size_t size = 0; size < mixed.block.payload.size(); size += 1 + size / 8)
    refused([=](Bytes& payload) { payload.resize(size); });
}

TEST_CASE("A payload without any delta is refused") {
  BlockCodec codec;
  const TestChunk chunk = MakeChunk(1, 100, false);
  BlockHead head;
  head.codec = BlockCodecId::kZstdDelta;
  head.records = {chunk.record};
  head.plain_bytes = 100;
  Bytes payload(kDeltaHeaderSize);
  SetU32(payload, 8, 100);
  payload.insert(payload.end(), chunk.bytes.begin(), chunk.bytes.end());
  REQUIRE_CODE(codec.Decode(head, payload, nullptr), kCorruption);
}

TEST_CASE("A payload of another codec or with flags needs another siltfs") {
  Mixed mixed;
  for (const size_t offset : {4u, 5u, 7u}) {
    Bytes payload = mixed.block.payload;
    payload[offset] = 2;
    REQUIRE_CODE(mixed.DecodeChanged(payload), kNeedsNewer);
  }
}

TEST_CASE("Whole chunks stored with another length than their chunks' are refused") {
  Mixed mixed(/*compressible=*/false);
  Bytes payload = mixed.block.payload;
  REQUIRE(payload[4] == static_cast<uint8_t>(BlockCodecId::kNone));
  // The codec says that the whole chunks are a zstd frame, which cannot be as long as they are.
  payload[4] = static_cast<uint8_t>(BlockCodecId::kZstd);
  REQUIRE_CODE(mixed.DecodeChanged(payload), kCorruption);
}

TEST_CASE("A delta that inflates to another length is missing") {
  Mixed mixed;
  BlockHead head = HeadFor(mixed.block);
  const int change = GENERATE(-1, 1);
  head.records[3].length += static_cast<uint32_t>(change);
  head.plain_bytes += static_cast<uint32_t>(change);
  const DecodedBlockPtr block = Must(mixed.codec.Decode(head, mixed.block.payload, &mixed.bases));
  CHECK(block->chunk(3).empty());
  REQUIRE(block->missing(3) != nullptr);
  CHECK(block->missing(3)->Is(StatusCode::kCorruption));
  for (const size_t i : {0u, 1u, 2u, 4u})
    CHECK(AsText(block->chunk(i)) == AsText(mixed.chunks[i].bytes));
}

TEST_CASE("A delta cannot grow beyond its chunk, whatever its frame says") {
  BlockCodec codec;
  const TestChunk base = MakeChunk(1, 2000, false);
  // 2 MiB of zeros in a frame of some bytes, in the place of a chunk of 1,000 bytes.
  const Bytes zeros(kMaxBlockPlainBytes);
  const Bytes bomb = Must(codec.EncodeDelta(zeros, base.bytes, 3, 10000));
  REQUIRE(bomb.size() < 500);
  const TestChunk chunk = MakeChunk(2, 1000, false);
  const EncodedBlock block =
      Must(codec.EncodeWithDeltas(Collect({chunk}), {DeltaFrame{{0, RefOf(base)}, bomb}}, kZstd3));
  MemoryBases bases;
  bases.Add(base);
  const DecodedBlockPtr decoded = Must(codec.Decode(HeadFor(block), block.payload, &bases));
  CHECK(decoded->chunk(0).empty());
  CHECK(decoded->missing(0)->Is(StatusCode::kCorruption));
  CHECK(decoded->memory_bytes() < 10000);
}

TEST_CASE("No changed byte of a payload yields wrong bytes without being noticed") {
  Mixed mixed;
  const DeltaPayload parts = Must(DecodeDeltaPayload(HeadFor(mixed.block), mixed.block.payload));
  const auto whole_begin = static_cast<size_t>(parts.whole.data() - mixed.block.payload.data());
  const size_t whole_end = whole_begin + parts.whole.size();
  for (size_t offset = 0; offset < mixed.block.payload.size(); ++offset) {
    // The frame of whole chunks has no checksum of its own: CheckPayload verifies it.
    if (offset >= whole_begin && offset < whole_end) continue;
    CAPTURE(offset);
    Bytes payload = mixed.block.payload;
    payload[offset] ^= static_cast<uint8_t>(1 + offset % 255);
    const auto block = mixed.DecodeChanged(payload);
    if (!block.ok()) {
      const StatusCode code = block.status().code();
      REQUIRE((code == StatusCode::kCorruption || code == StatusCode::kNeedsNewer));
      continue;
    }
    for (size_t i = 0; i < 5; ++i) {
      if ((*block)->missing(i) != nullptr) {
        REQUIRE((*block)->chunk(i).empty());
      } else {
        REQUIRE(AsText((*block)->chunk(i)) == AsText(mixed.chunks[i].bytes));
      }
    }
  }
}
