// A chunk store in which some chunks are deltas.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "store/segment/segment_reader.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"
#include "tests/support/family_chooser.h"

namespace siltfs::testing {

struct DeltaStore {
  static constexpr size_t kChunkBytes = 4000;

  explicit DeltaStore(size_t block_cache_bytes = 0, TestIndex index = TestIndex::kMap)
      : store(Settings(chooser, block_cache_bytes, index)) {
    store.Open();
  }

  static StoreSettings Settings(FamilyChooser& chooser, size_t block_cache_bytes, TestIndex index) {
    StoreSettings settings;
    settings.index = index;
    settings.block_cache_bytes = block_cache_bytes;
    settings.compression.codec = BlockCodecId::kZstd;
    settings.chooser = &chooser;
    return settings;
  }

  // Puts chunks, and so many others that the segments of these chunks are sealed.
  PutChunks PutSealed(std::vector<Bytes> chunks) {
    PutChunks put;
    put.chunks = std::move(chunks);
    REQUIRE_OK(TryPut(store.chunks(), put));
    Seal(store, next_filler_);
    return put;
  }
  static void Seal(StoreUnderTest& store, uint64_t& next_filler, size_t bytes = 80'000) {
    for (; bytes >= kChunkBytes; bytes -= kChunkBytes) {
      PutOne(store.chunks(), RandomChunk(next_filler++, kChunkBytes));
    }
    store.Commit();
    store.chunks().WaitUntilSealed();
    store.Commit();
  }
  RecompressionOutcome Recompress() {
    const auto outcome = store.recompressor().Recompress();
    REQUIRE_OK(outcome);
    return *outcome;
  }
  // Puts `count` bases, and then as many chunks that become deltas.
  void Fill(size_t count) {
    std::vector<Bytes> whole;
    std::vector<Bytes> similar;
    for (size_t i = 0; i < count; ++i) {
      whole.push_back(RandomChunk(1 + i, kChunkBytes));
      similar.push_back(SimilarTo(whole.back(), 1));
    }
    bases = PutSealed(std::move(whole));
    Recompress();
    dependents = PutSealed(std::move(similar));
    const RecompressionOutcome outcome = Recompress();
    INFO("rewritten " << outcome.segments << ", kept " << outcome.kept << ", left "
                      << outcome.left);
    REQUIRE(outcome.deltas == count);
  }

  // The deltas of all segments, and their bases.
  std::map<ChunkName, ChunkName> Deltas() {
    std::map<ChunkName, ChunkName> deltas;
    const BlockCodec codec;
    for (const FoundBlock& block : AllBlocks(store)) {
      const SegmentIdentity identity{store.identity().uuid, block.segment};
      const auto reader = SegmentReader::Open(store.env(), store.path(), identity, codec);
      REQUIRE_OK(reader);
      const auto found = (*reader)->ReadDeltaBases(block.offset);
      if (!found.ok()) continue;  // the block is damaged
      for (const DeltaBase& delta : *found)
        deltas[block.head.records[delta.position].name] = delta.base.name;
    }
    return deltas;
  }
  FoundBlock BlockOf(const ChunkName& name) {
    for (FoundBlock& block : AllBlocks(store)) {
      for (const ChunkRecord& record : block.head.records) {
        if (record.name == name) return std::move(block);
      }
    }
    FAIL("no block");
    return {};
  }

  FamilyChooser chooser;
  StoreUnderTest store;
  PutChunks bases;
  PutChunks dependents;

 private:
  uint64_t next_filler_ = 1'000'000;
};

}  // namespace siltfs::testing
