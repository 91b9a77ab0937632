// Threads look up and read chunks in the open segment while another thread appends and syncs
// blocks. Most errors show only in a build with ThreadSanitizer.
#include <atomic>
#include <thread>

#include "tests/store/segment/segment_test_support.h"

using namespace siltfs;
using namespace siltfs::testing;

namespace {

constexpr uint32_t kBlocks = 200;
constexpr uint32_t kChunksPerBlock = 3;

std::vector<TestChunk> ChunksOfBlock(uint32_t i) { return MakeChunks(10 * i, {50, 60, 70}); }

}  // namespace

TEST_CASE("Lookups and reads see whole blocks while others are appended and synced") {
  TestStore store;
  auto writer = store.Create(1);
  auto reader = store.Open(1);
  std::vector<EncodedBlock> blocks;
  for (uint32_t i = 0; i < kBlocks; ++i) blocks.push_back(Encode(store.codec, ChunksOfBlock(i)));

  std::atomic<bool> done = false;
  std::atomic<uint32_t> wrong = 0;
  auto append = [&] {
    for (uint32_t i = 0; i < kBlocks; ++i) {
      auto place = writer->Append(blocks[i], i + 1, 0);
      if (!place.ok() || place->first_ordinal != i * kChunksPerBlock) ++wrong;
    }
    done = true;
  };
  auto sync = [&] {
    while (!done) {
      uint64_t before = writer->size();
      if (!writer->Sync().ok() || writer->synced_size() < before) ++wrong;
    }
  };
  auto look_up = [&](uint64_t seed) {
    Random random(seed);
    while (!done) {
      uint32_t count = writer->chunk_count();
      if (count % kChunksPerBlock != 0) ++wrong;
      if (count == 0) continue;
      uint32_t ordinal = static_cast<uint32_t>(random.Below(count));
      uint32_t block = ordinal / kChunksPerBlock;
      const ChunkRecord& expected = blocks[block].records[ordinal % kChunksPerBlock];
      if (writer->FindChunk(ordinal) != FooterChunk{expected.name.Prefix64(), expected.tag})
        ++wrong;
      if (writer->Window(ordinal, 2).empty()) ++wrong;
      auto place = writer->FindBlock(ordinal);
      if (!place || place->first_ordinal != block * kChunksPerBlock) {
        ++wrong;
        continue;
      }
      auto read = reader->ReadBlock(place->block_offset);
      if (!read.ok() || (*read)->records()[ordinal % kChunksPerBlock] != expected) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(append);
  threads.emplace_back(sync);
  threads.emplace_back(look_up, 1);
  threads.emplace_back(look_up, 2);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  REQUIRE_OK(writer->Seal());
  CHECK(Must(reader->ReadFooter()).chunks.size() == kBlocks * kChunksPerBlock);
}

TEST_CASE("A failed sync fails the segment for all threads") {
  TestStore store;
  auto writer = store.Create(1);
  EncodedBlock block = Encode(store.codec, ChunksOfBlock(0));
  REQUIRE_OK(writer->Append(block, 1, 0));
  store.env.FailCall({.calls = SimCall::kSync});
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint32_t i = 0; i < 20; ++i) {
        writer->Sync().IgnoreError("judged below");
        writer->failure().IgnoreError("judged below");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE_CODE(writer->Sync(), kIoError);
  REQUIRE_CODE(writer->Append(block, 2, 0), kIoError);
  CHECK(store.env.Calls(SimCall::kSync) == 1);
}

TEST_CASE("Many threads can read a sealed segment at once") {
  TestStore store;
  auto writer = store.Create(1);
  auto places = AppendAll(*writer, store.codec, kSmallSegment);
  REQUIRE_OK(writer->Seal());
  auto reader = store.Open(1);
  std::atomic<uint32_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 50; ++i) {
        size_t block = (t + i) % places.size();
        auto read = reader->ReadBlock(places[block].block_offset);
        if (!read.ok() || (*read)->chunk_count() != kSmallSegment[block].size()) ++wrong;
        auto window = reader->ReadFooterWindow(places[block].first_ordinal, 1);
        if (!window.ok() || window->size() != 1) ++wrong;
        auto place = reader->FindBlock(places[block].first_ordinal);
        if (!place.ok() || *place != places[block]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
