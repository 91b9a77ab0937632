// Threads that read deltas whose bases lie in blocks with deltas.
#include <atomic>
#include <thread>
#include <vector>

#include "store/base/random.h"
#include "tests/fs/chunks/delta_store.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kLarge = 60'000;

bool IsRight(ChunkStore& store, const ChunkName& name, const Bytes& chunk) {
  const auto got = store.Get(name, static_cast<uint32_t>(chunk.size()));
  return got.ok() && std::ranges::equal(got->bytes, chunk);
}

}  // namespace

// If a thread that decodes one block waited for a thread that decodes the other one, none of them
// would end.
TEST_CASE("threads read two blocks that need each other's chunks as bases") {
  FamilyChooser chooser;
  StoreSettings settings = DeltaStore::Settings(chooser, GENERATE(0u, 2u << 20), TestIndex::kMap);
  settings.segment_bytes = 2u << 20;
  settings.block_plain_bytes = 512u << 10;
  StoreUnderTest store(settings);
  store.Open();
  // Each block has nine chunks: five bases, and four chunks similar to bases in the other block.
  std::vector<Bytes> first;
  std::vector<Bytes> second;
  for (uint64_t i = 0; i < 9; ++i) {
    first.push_back(i < 5 ? RandomChunk(100 + i, kLarge)
                          : SimilarTo(RandomChunk(200 + i - 5, kLarge), 1));
    second.push_back(i < 5 ? RandomChunk(200 + i, kLarge)
                           : SimilarTo(RandomChunk(100 + i - 5, kLarge), 1));
  }
  PutChunks put;
  put.chunks = first;
  put.chunks.insert(put.chunks.end(), second.begin(), second.end());
  REQUIRE_OK(TryPut(store.chunks(), put));
  uint64_t filler = 1'000'000;
  DeltaStore::Seal(store, filler, settings.segment_bytes);
  for (const FoundBlock& block : AllBlocks(store)) {
    for (const ChunkRecord& record : block.head.records) {
      for (size_t i = 0; i < put.names.size(); ++i) {
        if (put.names[i] == record.name && i % 9 < 5) chooser.Know(record, put.chunks[i]);
      }
    }
  }
  const auto outcome = store.recompressor().Recompress();
  REQUIRE_OK(outcome);
  REQUIRE(outcome->deltas == 8);
  store.Reopen();

  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int i = 0; i < 150; ++i) {
        const size_t at = random.Below(put.names.size());
        wrong += IsRight(store.chunks(), put.names[at], put.chunks[at]) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads read the right chunks while these become deltas") {
  FamilyChooser chooser;
  StoreUnderTest store(DeltaStore::Settings(chooser, 256u << 10, TestIndex::kMap));
  store.Open();
  PutChunks put;
  for (uint64_t i = 0; i < 300; ++i) {
    const Bytes base = RandomChunk(1 + i % 100, DeltaStore::kChunkBytes);
    put.chunks.push_back(i < 100 ? base : SimilarTo(base, static_cast<uint8_t>(i / 100)));
  }
  REQUIRE_OK(TryPut(store.chunks(), put));
  store.Commit();
  store.chunks().WaitUntilSealed();
  store.Commit();
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (bool last = false; !last;) {
        last = done;
        for (int i = 0; i < 50; ++i) {
          const size_t at = random.Below(put.names.size());
          wrong += IsRight(store.chunks(), put.names[at], put.chunks[at]) ? 0 : 1;
        }
      }
    });
  }
  const auto outcome = store.recompressor().Recompress();
  done = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE_OK(outcome);
  CHECK(outcome->deltas > 100);
  CHECK(wrong == 0);
}

}  // namespace siltfs::testing
