// Sequential reads: a block that is read ahead is cached when its reader needs it, and is decoded
// once. The number of blocks ahead stays within bounds. Failures of readahead do not change what
// reads return.
#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "fs/chunks/block_cache.h"
#include "store/base/random.h"
#include "store/segment/segment_files.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kChunkBytes = 2000;
// As many chunks as fill 16 KiB.
constexpr size_t kChunksPerBlock = 9;

// At most 12 blocks may be ahead of all readers, 8 of them ahead of one.
StoreSettings Settings() {
  StoreSettings settings;
  settings.block_cache_bytes = size_t{24 * 20} << 10;
  settings.segment_bytes = 256u << 10;
  return settings;
}
constexpr size_t kMaxAhead = 12;
constexpr size_t kMaxAheadOfOne = 8;

Recipe RecipeOf(const PutChunks& put) {
  Recipe recipe;
  for (size_t i = 0; i < put.chunks.size(); ++i)
    recipe.entries.push_back(RecipeEntry::Chunk(put.names[i], put.chunks[i].size()));
  return recipe;
}

// Reads a file of chunks of kChunkBytes as the file system does.
class Reader {
 public:
  Reader(ChunkStore& store, uint64_t file, const PutChunks& put, size_t first = 0)
      : store_(store), file_(file), put_(put), recipe_(RecipeOf(put)), next_(first) {}

  bool AtEnd() const { return next_ >= put_.chunks.size(); }
  size_t next() const { return next_; }
  void JumpTo(size_t chunk) { next_ = chunk; }

  // One read of `count` chunks; returns the chunks that could not be read.
  std::vector<size_t> Read(size_t count) {
    std::vector<size_t> failed;
    ChunkStore::ReadCursor read_cursor;
    const size_t begin = next_;
    for (; next_ < std::min(begin + count, put_.chunks.size()); ++next_) {
      auto got = store_.Get(put_.names[next_], kChunkBytes, read_cursor);
      if (!got.ok()) {
        CHECK(got.status().code() == StatusCode::kCorruption);
        failed.push_back(next_);
      } else if (!std::ranges::equal(got->bytes, put_.chunks[next_])) {
        FAIL("chunk " << next_ << " differs from the chunk put");
      }
    }
    store_.NoteRead(file_, recipe_, recipe_.size(), begin * kChunkBytes,
                    (next_ - begin) * kChunkBytes);
    return failed;
  }
  // Reads, and returns when all readahead that is due is done.
  void ReadAndWait(size_t count) {
    CHECK(Read(count).empty());
    store_.WaitForReadahead();
  }

 private:
  ChunkStore& store_;
  const uint64_t file_;
  const PutChunks& put_;
  const Recipe recipe_;
  size_t next_;
};

uint64_t Decoded(StoreUnderTest& store) { return store.chunks().read_stats().blocks_decoded; }
size_t Ahead(StoreUnderTest& store) { return store.chunks().read_stats().blocks_ahead; }
size_t CountBlocks(StoreUnderTest& store) { return AllBlocks(store).size(); }

// Gets the chunks from `begin` to `end` one after another. Returns how many are missing or wrong.
int CountWrong(ChunkStore& store, const PutChunks& put, size_t begin, size_t end) {
  ChunkStore::ReadCursor read_cursor;
  int wrong = 0;
  for (size_t i = begin; i < end; ++i) {
    auto got = store.Get(put.names[i], kChunkBytes, read_cursor);
    if (!got.ok() || !std::ranges::equal(got->bytes, put.chunks[i])) ++wrong;
  }
  return wrong;
}

// Puts chunks, and reopens the store so that none of them is in memory.
PutChunks PutCold(StoreUnderTest& store, uint64_t seed, size_t count) {
  store.Open();
  PutChunks put = PutMany(store.chunks(), seed, count, kChunkBytes);
  store.Reopen();
  return put;
}

}  // namespace

TEST_CASE("a sequential reader finds the next blocks in memory, each decoded once") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  const size_t blocks = CountBlocks(store);
  REQUIRE(blocks == 100);
  Reader reader(store.chunks(), 7, put);
  reader.ReadAndWait(4);
  CHECK(Ahead(store) == 0);  // one read is no stream
  size_t met_cold = 0;
  for (size_t reads = 1; !reader.AtEnd(); ++reads) {
    const uint64_t before = Decoded(store);
    const size_t first_block = reader.next() / kChunksPerBlock;
    CHECK(reader.Read(5).empty());
    const size_t last_block = (reader.next() - 1) / kChunksPerBlock;
    store.chunks().WaitForReadahead();
    CHECK(Ahead(store) <= kMaxAheadOfOne);
    // Only blocks that were read or are ahead are decoded.
    CHECK(Decoded(store) <= last_block + 1 + kMaxAheadOfOne);
    if (reads < 3) continue;
    if (last_block + 1 < blocks) CHECK(Ahead(store) > 0);
    if (first_block != last_block && before < last_block + 1) ++met_cold;
  }
  CHECK(met_cold == 0);
  CHECK(Decoded(store) == blocks);
}

TEST_CASE("readers of several files, and of one file in several places, share the readahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 1800);
  const size_t blocks = CountBlocks(store);
  PutChunks half;
  half.chunks.assign(put.chunks.begin(), put.chunks.begin() + 900);
  half.names.assign(put.names.begin(), put.names.begin() + 900);
  PutChunks rest;
  rest.chunks.assign(put.chunks.begin() + 900, put.chunks.end());
  rest.names.assign(put.names.begin() + 900, put.names.end());
  const bool one_file = GENERATE(true, false);
  std::vector<Reader> readers;
  if (one_file) {
    readers.emplace_back(store.chunks(), 1, put, 0);
    readers.emplace_back(store.chunks(), 1, put, 900);
  } else {
    readers.emplace_back(store.chunks(), 1, half);
    readers.emplace_back(store.chunks(), 2, rest);
  }
  for (size_t round = 0; round < 180; ++round) {
    for (Reader& reader : readers) reader.ReadAndWait(5);
    CHECK(Ahead(store) <= kMaxAhead);
    // While both readers read on, more than half of the allowed blocks are ahead of them.
    if (round > 6 && round < 120) CHECK(Ahead(store) > kMaxAhead / 2);
  }
  CHECK(Decoded(store) == blocks);
}

TEST_CASE("many readers together stay within the bound on blocks ahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 1800);
  std::vector<Reader> readers;
  for (uint64_t i = 0; i < 20; ++i) readers.emplace_back(store.chunks(), i, put, i * 90);
  for (size_t round = 0; round < 16; ++round) {
    for (Reader& reader : readers) {
      reader.ReadAndWait(5);
      CHECK(Ahead(store) <= kMaxAhead);
    }
  }
  CHECK(Ahead(store) == kMaxAhead);
}

TEST_CASE("a cache that is too small gets no readahead, and each block is decoded once") {
  StoreSettings settings = Settings();
  settings.block_cache_bytes = 20u << 10;
  StoreUnderTest store(settings);
  const PutChunks put = PutCold(store, 1, 450);
  Reader reader(store.chunks(), 1, put);
  while (!reader.AtEnd()) {
    reader.ReadAndWait(5);
    CHECK(Ahead(store) == 0);
  }
  CHECK(Decoded(store) == CountBlocks(store));
}

TEST_CASE("a reader that jumps about gets no readahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  Reader reader(store.chunks(), 1, put);
  Random random(3);
  std::set<size_t> blocks;
  for (int i = 0; i < 60; ++i) {
    reader.JumpTo(random.Below(890));
    const size_t first = reader.next();
    reader.ReadAndWait(1);
    blocks.insert(first / kChunksPerBlock);
  }
  CHECK(Ahead(store) == 0);
}

TEST_CASE("a reader that has ended frees its share of the readahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  Reader gone(store.chunks(), 1, put);
  for (int i = 0; i < 10; ++i) gone.ReadAndWait(5);
  CHECK(Ahead(store) == kMaxAheadOfOne);
  SECTION("after its file is closed") { store.chunks().ForgetReads(1); }
  SECTION("after many reads by others") {
    const Recipe recipe = RecipeOf(put);
    for (int i = 0; i < 600; ++i) store.chunks().NoteRead(99, recipe, recipe.size(), 0, 1);
  }
  CHECK(Ahead(store) == 0);
}

TEST_CASE("reads that overtake each other still form a stream") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  Reader reader(store.chunks(), 1, put);
  for (size_t at = 0; at < 800; at += 20) {
    for (const size_t first : {at, at + 10, at + 5, at + 15}) {
      reader.JumpTo(first);
      reader.ReadAndWait(5);
    }
    if (at > 40) CHECK(Ahead(store) > 0);
  }
}

TEST_CASE("a read cursor returns the right chunks, in any order of reads") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 450);
  ChunkStore::ReadCursor read_cursor;
  Random random(11);
  size_t at = 0;
  for (int i = 0; i < 2000; ++i) {
    // Runs forward, repetitions and jumps.
    const uint64_t how = random.Below(8);
    if (how == 0) at = random.Below(put.chunks.size());
    if (how > 1) at = (at + 1) % put.chunks.size();
    auto got = store.chunks().Get(put.names[at], kChunkBytes, read_cursor);
    REQUIRE_OK(got);
    REQUIRE(std::ranges::equal(got->bytes, put.chunks[at]));
  }
  // The length must match, too.
  REQUIRE_OK(store.chunks().Get(put.names[10], kChunkBytes, read_cursor));
  CHECK(!store.chunks().Get(put.names[11], kChunkBytes - 1, read_cursor).ok());
}

TEST_CASE("a damaged block is an error for its chunks and no others, though it was read ahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 450);
  const std::optional<Location> place = Find(store, put.names[200]);
  REQUIRE(place);
  FlipByte(store, SegmentPath(store.path(), place->segment), place->block_offset + 5000);
  std::vector<size_t> expected;
  for (size_t i = 0; i < kChunksPerBlock; ++i) expected.push_back(198 + i);
  for (int round = 0; round < 2; ++round) {
    Reader reader(store.chunks(), 1, put);
    std::vector<size_t> failed;
    while (!reader.AtEnd()) {
      for (size_t chunk : reader.Read(5)) failed.push_back(chunk);
      store.chunks().WaitForReadahead();
    }
    CHECK(failed == expected);
  }
}

TEST_CASE("an index that fails prevents readahead, and changes no answer") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 450);
  Reader reader(store.chunks(), 1, put);
  reader.ReadAndWait(5);
  store.index().FailGets(Status(StatusCode::kIoError, "for the test"));
  while (!reader.AtEnd()) reader.ReadAndWait(5);
  store.index().FailGets(Status::Ok());
}

TEST_CASE("readahead skips chunks that are not in any segment yet") {
  StoreUnderTest store(Settings());
  PutChunks put = PutCold(store, 1, 450);
  PutChunks fresh = PutMany(store.chunks(), 5000, 4, kChunkBytes);
  put.Append(fresh);
  Reader reader(store.chunks(), 1, put);
  while (!reader.AtEnd()) reader.ReadAndWait(5);
}

TEST_CASE("a read-only store reads ahead, too") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 450);
  store.Kill();
  store.Open(true);
  Reader reader(store.chunks(), 1, put);
  for (int i = 0; i < 10; ++i) reader.ReadAndWait(5);
  CHECK(Ahead(store) > 0);
}

TEST_CASE("a store can be closed, or dropped, while it reads ahead") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  for (size_t round = 0; round < 40; ++round) {
    Reader one(store.chunks(), 1, put);
    Reader other(store.chunks(), 2, put, 450);
    for (size_t i = 0; i < 2 + round % 5; ++i) {
      CHECK(one.Read(5).empty());
      CHECK(other.Read(5).empty());
    }
    if (round % 2 == 0) {
      store.Close();
    } else {
      store.Crash();
    }
    store.Open();
  }
}

TEST_CASE("a block that many threads ask for at once is decoded once") {
  constexpr int kThreads = 8;
  BlockCache cache(1u << 20);
  std::atomic<int> asking{0};
  std::atomic<int> decoded{0};
  std::atomic<int> right{0};
  const auto decode = [&]() -> Result<DecodedBlockPtr> {
    ++decoded;
    while (asking < kThreads) std::this_thread::yield();
    return DecodedBlockPtr(std::make_shared<DecodedBlock>(BlockHead(), Buffer()));
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++asking;
      auto block = cache.Get({1, SegmentFile::kOriginal, 64}, decode);
      if (block.ok() && *block) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(decoded == 1);
  CHECK(right == kThreads);
}

TEST_CASE("a thread that waited for a failed decoding tries itself") {
  constexpr int kThreads = 4;
  BlockCache cache(1u << 20);
  std::atomic<int> asking{0};
  std::atomic<int> tries{0};
  std::atomic<int> failed{0};
  const auto decode = [&]() -> Result<DecodedBlockPtr> {
    ++tries;
    while (asking < kThreads) std::this_thread::yield();
    return Status(StatusCode::kCorruption, "damaged");
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++asking;
      auto block = cache.Get({1, SegmentFile::kOriginal, 64}, decode);
      if (!block.ok() && block.status().Is(StatusCode::kCorruption)) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(tries == kThreads);
  CHECK(failed == kThreads);
}

TEST_CASE("threads that read in order, in several places, get the right chunks") {
  StoreUnderTest store(Settings());
  const PutChunks put = PutCold(store, 1, 900);
  const Recipe recipe = RecipeOf(put);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int run = 0; run < 12; ++run) {
        const uint64_t file = t / 2;
        size_t at = random.Below(800);
        for (int reads = 0; reads < 12; ++reads) {
          const size_t begin = at;
          at = std::min<size_t>(begin + 6, put.chunks.size());
          wrong += CountWrong(store.chunks(), put, begin, at);
          store.chunks().NoteRead(file, recipe, recipe.size(), begin * kChunkBytes,
                                  (at - begin) * kChunkBytes);
        }
        if (run % 4 == 3) store.chunks().ForgetReads(file);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  store.chunks().WaitForReadahead();
  CHECK(Ahead(store) <= kMaxAhead);
}

TEST_CASE("a large block counts for several blocks ahead") {
  StoreSettings settings = Settings();
  settings.block_cache_bytes = size_t{6} << 20;
  settings.segment_bytes = kMaxSegmentTargetSize / 16;
  StoreUnderTest store(settings);
  store.Open();
  const PutChunks put = PutRepetitive(store.chunks(), 4000, kChunkBytes);
  store.chunks().WaitUntilSealed();
  store.Commit();
  REQUIRE(store.recompressor().Recompress()->segments > 0);
  store.Reopen();
  Reader reader(store.chunks(), 7, put);
  // Blocks hold 512 KiB, and 2 MiB may be ahead of one reader. A decoded block has 270 chunks.
  for (int reads = 0; reads < 20; ++reads) {
    reader.ReadAndWait(10);
    const size_t met = reader.next() / 260 + 1;
    CHECK(Decoded(store) <= met + 5);
  }
  CHECK(Decoded(store) > 2);
}

TEST_CASE("threads that read during recompression get the right chunks") {
  StoreSettings settings = Settings();
  settings.block_cache_bytes = size_t{1200} << 10;
  StoreUnderTest store(settings);
  store.Open();
  const PutChunks put = PutRepetitive(store.chunks(), 6000, kChunkBytes);
  const Recipe recipe = RecipeOf(put);
  store.chunks().WaitUntilSealed();
  store.Commit();
  std::atomic<int> wrong{0};
  std::atomic<bool> recompressed{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (bool last = false; !last;) {
        last = recompressed;
        size_t at = random.Below(put.chunks.size());
        for (int reads = 0; reads < 12; ++reads) {
          const size_t begin = at;
          at = std::min<size_t>(begin + 6, put.chunks.size());
          wrong += CountWrong(store.chunks(), put, begin, at);
          if (t > 0) {
            store.chunks().NoteRead(t, recipe, recipe.size(), begin * kChunkBytes,
                                    (at - begin) * kChunkBytes);
          }
        }
      }
    });
  }
  const auto outcome = store.recompressor().Recompress();
  recompressed = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE_OK(outcome);
  CHECK(outcome->segments > 5);
  CHECK(wrong == 0);
}

}  // namespace siltfs::testing
