// Many threads put overlapping chunks, get them and commit, all at once.
#include <algorithm>
#include <atomic>
#include <thread>

#include "store/base/random.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kChunks = 600;
constexpr int kPutters = 4;

// Findings of threads, in which Catch's macros must not be used.
struct Findings {
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};

  void Expect(bool right) {
    if (!right) ++wrong;
  }
};

// Puts all chunks, in an order and in batches of its own.
void PutAll(ChunkStore& store, uint64_t seed, std::vector<ChunkName>& names, Findings& findings) {
  Random random(seed);
  std::vector<uint64_t> order(kChunks);
  for (uint64_t i = 0; i < kChunks; ++i) order[i] = i;
  // The first half has one order for all threads, so that they meet; the rest is shuffled.
  for (size_t i = kChunks / 2; i + 1 < kChunks; ++i) {
    std::swap(order[i], order[i + random.Below(kChunks - i)]);
  }
  names.resize(kChunks);
  for (size_t at = 0; at < kChunks;) {
    const size_t count = std::min<size_t>(1 + random.Below(20), kChunks - at);
    PutChunks batch;
    for (size_t i = 0; i < count; ++i) batch.chunks.push_back(RandomChunk(order[at + i], 900));
    findings.Expect(TryPut(store, batch).ok());
    for (size_t i = 0; i < count; ++i) names[order[at + i]] = batch.names[i];
    const size_t one = random.Below(count);
    auto got = store.Get(batch.names[one], 900);
    findings.Expect(got.ok() && std::equal(got->bytes.begin(), got->bytes.end(),
                                           batch.chunks[one].begin(), batch.chunks[one].end()));
    at += count;
  }
}

}  // namespace

TEST_CASE("threads that put, get and commit at once lose nothing, and store each chunk once") {
  StoreSettings settings;
  settings.index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  settings.pipeline_bytes = 64u << 10;
  settings.footer_cache_bytes = 32u << 10;
  settings.block_cache_bytes = 64u << 10;
  StoreUnderTest store(settings);
  store.Open();
  const PutChunks old = PutMany(store.chunks(), 0, 100, 900);
  store.Reopen();
  const uint64_t chunks_before = store.chunks().totals().chunks;

  Findings findings;
  std::array<std::vector<ChunkName>, kPutters> names;
  std::vector<std::thread> putters;
  std::vector<std::thread> others;
  for (int i = 0; i < kPutters; ++i) {
    putters.emplace_back([&, i] {
      PutAll(store.chunks(), static_cast<uint64_t>(i), names[static_cast<size_t>(i)], findings);
    });
  }
  others.emplace_back([&] {
    while (!findings.done) findings.Expect(store.TryCommit().ok());
  });
  others.emplace_back([&] {
    Random random(77);
    while (!findings.done) {
      const size_t i = random.Below(old.chunks.size());
      auto got = store.chunks().Get(old.names[i], 900);
      findings.Expect(got.ok() && std::equal(got->bytes.begin(), got->bytes.end(),
                                             old.chunks[i].begin(), old.chunks[i].end()));
      findings.Expect(store.chunks().totals().chunks >= chunks_before);
    }
  });
  for (std::thread& thread : putters) thread.join();
  findings.done = true;
  for (std::thread& thread : others) thread.join();
  REQUIRE(findings.wrong == 0);

  for (int i = 1; i < kPutters; ++i) REQUIRE(names[static_cast<size_t>(i)] == names[0]);
  // If an index look-up ends just before the entry of a new chunk is made, the pipeline still knows
  // the chunk. So no chunk is stored twice.
  store.Commit();
  REQUIRE(store.chunks().totals().chunks == kChunks);
  store.Close();
  REQUIRE(store.committed().last_commit > 2);
  store.Open();
  for (uint64_t i = 0; i < kChunks; ++i) {
    REQUIRE(ComesBack(store.chunks(), names[0][i], RandomChunk(i, 900)));
  }
}

TEST_CASE("a device that fails under many threads leaves none of them waiting") {
  const auto call = GENERATE(SimCall::kWrite, SimCall::kSync, SimCall::kCreate);
  for (uint64_t nth : {1, 2, 3, 5, 8, 13}) {
    INFO("call " << nth << " of kind " << static_cast<uint32_t>(call));
    StoreSettings settings;
    settings.pipeline_bytes = 32u << 10;
    settings.segment_bytes = 16u << 10;
    StoreUnderTest store(settings);
    store.Open();
    store.env().FailCall({.calls = call, .nth = nth, .sticky = true, .path_part = "segments"});
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kPutters; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < 100; ++i) {
          PutChunks batch;
          for (uint64_t k = 0; k < 5; ++k) {
            batch.chunks.push_back(RandomChunk(t * 10000 + i * 10 + k, 1500));
          }
          if (TryPut(store.chunks(), batch).ok()) continue;
          ++refused;
          return;
        }
      });
    }
    Status failed;
    while (failed.ok()) failed = store.TryCommit();
    for (std::thread& thread : threads) thread.join();
    REQUIRE_CODE(failed, kReadOnly);
    REQUIRE(refused == kPutters);
    store.Kill();
    store.env().ClearFaults();
    store.Open();
  }
}

TEST_CASE("WaitUntilSealed waits for chunks in the pipeline, too") {
  StoreUnderTest store;
  store.Open();
  // Nothing gets beyond the first block until LetPutsGo.
  store.index().HoldPuts();
  PutMany(store.chunks(), 1, 100);
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  uint64_t stored = 0;
  std::thread waits([&] {
    begun = true;
    store.chunks().WaitUntilSealed();
    stored = store.chunks().totals().stored_bytes;
    ended = true;
  });
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 10'000 && !ended; ++i) std::this_thread::yield();
  store.index().LetPutsGo();
  waits.join();
  CHECK(stored > 200'000);
  store.Commit();
  size_t sealed = 0;
  for (const auto& [id, record] : store.committed().segments) sealed += record.sealed ? 1 : 0;
  CHECK(sealed > 1);
  CHECK(sealed + 1 == store.committed().segments.size());
}

}  // namespace siltfs::testing
