// A store on a simulated device that holds only segments, with deterministic blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"
#include "store/segment/directory_segment_store.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_reader.h"
#include "store/segment/segment_writer.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr Compression kPlain{BlockCodecId::kNone, 0};
inline constexpr Compression kZstd3{BlockCodecId::kZstd, 3};

// Returns the value of a result, which must be OK.
template <typename T>
T Must(Result<T> result) {
  REQUIRE_OK(result);
  return std::move(result).value();
}

inline StoreUuid TestUuid(uint8_t first = 1) {
  StoreUuid uuid;
  for (size_t i = 0; i < StoreUuid::kSize; ++i) uuid.bytes[i] = static_cast<uint8_t>(first + i);
  return uuid;
}

// A chunk made from a seed: text-like if `compressible`; salted if 5 divides the seed.
struct TestChunk {
  ChunkRecord record;
  Bytes bytes;
};

inline TestChunk MakeChunk(uint64_t seed, uint32_t length, bool compressible = true) {
  Random random(seed);
  TestChunk chunk;
  chunk.bytes.resize(length);
  random.Fill(chunk.bytes);
  if (compressible) {
    for (uint8_t& byte : chunk.bytes) byte = "abcd"[byte & 3];
  }
  random.Fill(chunk.record.name.bytes);
  chunk.record.tag = random.Next();
  chunk.record.length = length;
  chunk.record.salt = static_cast<uint8_t>(seed % 5 == 0 ? 1 : 0);
  return chunk;
}

// Chunks of these lengths with seeds from `seed` on.
inline std::vector<TestChunk> MakeChunks(uint64_t seed, const std::vector<uint32_t>& lengths,
                                         bool compressible = true) {
  std::vector<TestChunk> chunks;
  for (uint32_t length : lengths) chunks.push_back(MakeChunk(seed++, length, compressible));
  return chunks;
}

inline PlainBlock Collect(const std::vector<TestChunk>& chunks) {
  BlockBuilder builder;
  for (const TestChunk& chunk : chunks) REQUIRE_OK(builder.Add(chunk.record, chunk.bytes));
  return builder.Take();
}

inline EncodedBlock Encode(const BlockCodec& codec, const std::vector<TestChunk>& chunks,
                           const Compression& compression = kZstd3) {
  return Must(codec.Encode(Collect(chunks), compression));
}

inline void RequireSame(const DecodedBlock& block, const std::vector<TestChunk>& chunks) {
  REQUIRE(block.chunk_count() == chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    CHECK(block.records()[i] == chunks[i].record);
    CHECK(AsText(block.chunk(i)) == AsText(chunks[i].bytes));
  }
}

class TestStore {
 public:
  TestStore() {
    REQUIRE_OK(env.CreateDirectory(path));
    REQUIRE_OK(env.SyncDirectory("/"));
    REQUIRE_OK(CreateSegmentsDirectory(env, path));
  }

  SegmentIdentity Identity(SegmentId id) const { return {TestUuid(), id}; }

  std::unique_ptr<SegmentWriter> Create(SegmentId id, SegmentKind kind = SegmentKind::kData,
                                        const SegmentWriterOptions& options = {}) {
    return Must(SegmentWriter::Create(env, path, Identity(id), kind, 7, options));
  }
  std::unique_ptr<SegmentReader> Open(SegmentId id) {
    return Must(SegmentReader::Open(env, path, Identity(id), codec));
  }
  std::string FileBytes(SegmentId id) {
    return Must(ReadWholeFile(env, SegmentPath(path, id), 64U << 20));
  }

  // Replaces the segment's file by `contents`, durably.
  void SetFileBytes(SegmentId id, std::string_view contents) {
    REQUIRE_OK(CreateSegmentDirectory(env, path, id));
    REQUIRE_OK(ReplaceFile(env, SegmentPath(path, id), AsBytes(contents)));
  }
  void FlipByte(SegmentId id, uint64_t offset, uint8_t mask = 0x40) {
    std::string bytes = FileBytes(id);
    bytes.at(offset) = static_cast<char>(bytes[offset] ^ mask);
    SetFileBytes(id, bytes);
  }

  // Replaces the segment's file by the new file that a rewrite has prepared.
  Status Install(SegmentId id) { return segments.Replace(id, BuiltReplacement(env, path, id)); }

  SimEnv env;
  const std::string path = "/store";
  DirectorySegmentStore segments{env, path};
  const BlockCodec codec;
};

// The blocks of a small segment, each as a list of chunk lengths.
inline const std::vector<std::vector<uint32_t>> kSmallSegment = {
    {100, 200, 1}, {300}, {40, 50, 60, 70}};

// The chunks of the i-th block of a segment made of `layout`.
inline std::vector<TestChunk> ChunksOf(const std::vector<std::vector<uint32_t>>& layout, size_t i) {
  return MakeChunks(100 * (i + 1), layout[i]);
}

// Appends all of `layout` with sequences from `sequence` on; returns the places of the blocks.
inline std::vector<BlockPlace> AppendAll(SegmentWriter& writer, const BlockCodec& codec,
                                         const std::vector<std::vector<uint32_t>>& layout,
                                         const Compression& compression = kZstd3,
                                         uint64_t sequence = 1000) {
  std::vector<BlockPlace> places;
  for (size_t i = 0; i < layout.size(); ++i) {
    places.push_back(
        Must(writer.Append(Encode(codec, ChunksOf(layout, i), compression), sequence + i, 8)));
  }
  return places;
}

}  // namespace siltfs::testing
