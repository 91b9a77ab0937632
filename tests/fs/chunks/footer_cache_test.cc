// Compares the footer cache with a plain list of footer parts (windows). Counts the index look-ups
// that it saves for a stream of duplicates.
#include "fs/chunks/footer_cache.h"

#include <algorithm>
#include <list>

#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/fs/chunks/store_under_test.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kWindow = FooterCache::kWindowChunks;

ChunkName NameWith(uint64_t prefix) {
  Encoder bytes;
  bytes.BigU64(prefix).Zeros(12);
  return ChunkName::FromBytes(bytes.view());
}

// Windows, most recently used first, each with all its chunks.
struct Model {
  struct Window {
    SegmentId segment;
    uint32_t start;
    std::vector<FooterChunk> chunks;
  };
  std::list<Window> windows;

  std::list<Window>::iterator Find(SegmentId segment, uint32_t start) {
    return std::find_if(windows.begin(), windows.end(), [&](const Window& window) {
      return window.segment == segment && window.start == start;
    });
  }
  void Touch(std::list<Window>::iterator window) {
    windows.splice(windows.begin(), windows, window);
  }
  bool Has(uint64_t prefix, const ChunkTag* tag) const {
    for (const Window& window : windows) {
      for (const FooterChunk& chunk : window.chunks) {
        if (chunk != FooterChunk{} && chunk.name_prefix == prefix && (!tag || chunk.tag == *tag))
          return true;
      }
    }
    return false;
  }
};

// One of a few values, so that entries collide: prefixes that are neighbours in the table, and
// prefixes with equal low halves.
uint64_t SomePrefix(Random& random) {
  const uint64_t low = random.Below(40);
  return random.OneIn(3) ? low << 32 | 7 : low;
}

}  // namespace

TEST_CASE(
    "the footer cache finds the same as a plain list after any inserts, evictions and erasures") {
  const uint64_t seed = GENERATE(1, 2, 3);
  Random random(seed);
  constexpr size_t kWindows = 5;
  FooterCache windows(kWindows * kWindow * 28);
  // The cache chooses its capacity: at least one window, and no more than its memory holds.
  size_t capacity = 0;
  for (SegmentId id = 1; id <= 2 * kWindows; ++id) windows.Insert(id, 0, {{id, id}});
  for (SegmentId id = 1; id <= 2 * kWindows; ++id) capacity += windows.At(id, 0) ? 1 : 0;
  REQUIRE(capacity >= 1);
  REQUIRE(capacity <= kWindows * 28 / 16);
  for (SegmentId id = 1; id <= 2 * kWindows; ++id) windows.EraseSegment(id);

  Model model;
  for (int step = 0; step < 3000; ++step) {
    const auto segment = static_cast<SegmentId>(1 + random.Below(4));
    const auto start = static_cast<uint32_t>(random.Below(3)) * kWindow;
    const uint64_t what = random.Below(20);
    if (what == 0) {
      std::vector<FooterChunk> chunks(1 + random.Below(random.OneIn(5) ? kWindow : 30));
      for (FooterChunk& chunk : chunks) {
        if (random.OneIn(10)) continue;  // lost to damage
        chunk = {SomePrefix(random), random.Below(3)};
      }
      windows.Insert(segment, start, chunks);
      auto found = model.Find(segment, start);
      if (found != model.windows.end()) {
        if (found->chunks.size() >= chunks.size()) continue;
        model.windows.erase(found);
      }
      if (model.windows.size() == capacity) model.windows.pop_back();
      model.windows.push_front({segment, start, chunks});
    } else if (what == 1 && random.OneIn(4)) {
      windows.EraseSegment(segment);
      model.windows.remove_if([&](const auto& window) { return window.segment == segment; });
    } else if (what < 6) {
      const auto ordinal = start + static_cast<uint32_t>(random.Below(40));
      const auto chunk = windows.At(segment, ordinal);
      auto found = model.Find(segment, start);
      const bool there = found != model.windows.end() && ordinal - start < found->chunks.size();
      REQUIRE(chunk.has_value() == there);
      if (!there) continue;
      REQUIRE(*chunk == found->chunks[ordinal - start]);
      model.Touch(found);
    } else {
      const uint64_t prefix = SomePrefix(random);
      const ChunkTag tag = random.Below(3);
      const bool any = random.OneIn(4);
      const auto hit = any ? windows.Find(NameWith(prefix)) : windows.Find(NameWith(prefix), tag);
      REQUIRE(hit.has_value() == model.Has(prefix, any ? nullptr : &tag));
      if (!hit) continue;
      auto found = model.Find(hit->segment, FooterCache::WindowStart(hit->ordinal));
      REQUIRE(found != model.windows.end());
      const FooterChunk& chunk = found->chunks.at(hit->ordinal - found->start);
      REQUIRE(chunk.name_prefix == prefix);
      REQUIRE(chunk.tag == hit->tag);
      REQUIRE((any || chunk.tag == tag));
      model.Touch(found);
    }
  }
}

TEST_CASE("entries that were lost to damage cost nothing and are never found") {
  FooterCache windows(1u << 20);
  for (SegmentId id = 1; id < 200; ++id) {
    std::vector<FooterChunk> chunks(kWindow);
    chunks[5] = {id, id};
    windows.Insert(id, 0, std::move(chunks));
    REQUIRE(windows.Find(NameWith(id), id));
  }
  REQUIRE_FALSE(windows.Find(NameWith(0)));
  REQUIRE_FALSE(windows.Find(NameWith(0), 0));
}

TEST_CASE("a repeated stream is found in the footer cache, with few index look-ups") {
  StoreSettings settings;
  settings.index = GENERATE(TestIndex::kMap, TestIndex::kSilt);
  settings.segment_bytes = 1u << 20;
  settings.footer_cache_bytes = 256u << 10;
  constexpr size_t kChunks = 12000;
  constexpr size_t kBatch = 64;
  StoreUnderTest store(settings);
  store.Open();
  for (size_t i = 0; i < kChunks; i += kBatch) PutMany(store.chunks(), i, kBatch, 300);
  store.Reopen();

  const uint64_t before = store.index().stats().lookups;
  const uint64_t chunks = store.chunks().totals().chunks;
  for (size_t i = 0; i < kChunks; i += kBatch) PutMany(store.chunks(), i, kBatch, 300);
  const uint64_t lookups = store.index().stats().lookups - before;
  INFO(lookups << " lookups for " << kChunks << " duplicates");
  REQUIRE(store.chunks().totals().chunks == chunks);
  REQUIRE(lookups > 0);
  REQUIRE(lookups <= kChunks / 50);  // 0.02 a chunk
}

}  // namespace siltfs::testing
