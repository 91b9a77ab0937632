// Copying ranges between files. The bytes are right, and no chunks are stored or read for the copy.
// A later fold makes the recipe that the content would have if one call had written it.
#include "fs/content/clone.h"

#include <algorithm>

#include "store/base/random.h"
#include "tests/fs/core/content_fixture.h"
#include "tests/fs/core/store_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kMiB = 1u << 20;

// Returns the recipe of this content when it is written with one call. If the content has no holes,
// each way to write it must give this recipe.
Recipe CanonicalRecipe(ChunkStoreFixture& store, const Bytes& content) {
  TestFile file(store);
  file.Write(0, content);
  file.Fold();
  return file.recipe();
}

uint64_t RandomSize(Random& random, uint64_t most) {
  static constexpr uint64_t kScales[] = {1, 5'000, 70'000, 2'000'000};
  return 1 + random.Below(std::min(most, kScales[random.Below(4)]));
}

// Returns a random offset, which is about half of the time the boundary of a chunk or hole.
uint64_t RandomPlace(Random& random, const TestFile& file, uint64_t size) {
  const uint64_t place = random.Below(size + 1);
  if (random.OneIn(2)) return place;
  uint64_t at = 0;
  for (const RecipeEntry& entry : file.Entries()) {
    if (at + entry.length > place) break;
    at += entry.length;
  }
  return std::min(at, size);
}

}  // namespace

TEST_CASE("cloning a whole file takes over the recipe and stores and reads nothing") {
  ChunkStoreFixture store;
  TestFile source(store);
  source.Write(0, RandomBytes(1, 3 * kMiB + 77));
  source.PunchHole(kMiB, 200'000);
  source.FoldAndCheck();
  TestFile target(store);
  const uint64_t chunks = store.StoredChunks();
  target.Clone(source, {.source_offset = 0, .target_offset = 0, .length = source.record().size});
  REQUIRE((target.recipe() == source.recipe()));
  REQUIRE(target.overlay().empty());
  REQUIRE(store.StoredChunks() == chunks);
  target.RequireContent();
}

TEST_CASE("a clone has the source's bytes and is cut again as if it had been written") {
  const uint64_t seed = GENERATE(range(1, 31));
  INFO("seed " << seed);
  Random random(seed);
  ChunkStoreFixture store;
  TestFile a(store);
  TestFile b(store);
  const bool holes = seed % 2 == 0;
  for (TestFile* file : {&a, &b}) {
    file->Write(0, RandomBytes(random.Next(), RandomSize(random, 2'000'000)));
  }
  for (int step = 0; step < 40; ++step) {
    INFO("step " << step);
    TestFile& source = random.OneIn(2) ? a : b;
    TestFile& target = random.OneIn(3) ? source : (&source == &a ? b : a);
    if (random.OneIn(6)) {
      target.Write(random.Below(target.expected().size() + 1),
                   RandomBytes(random.Next(), RandomSize(random, 200'000)));
    }
    if (holes && random.OneIn(6)) {
      target.PunchHole(random.Below(target.expected().size() + 1), RandomSize(random, 300'000));
    }
    if (holes && random.OneIn(8)) target.Truncate(target.expected().size() + random.Below(100'000));
    if (random.OneIn(3)) target.Fold();
    source.Fold();
    const uint64_t source_size = source.expected().size();
    uint64_t begin = RandomPlace(random, source, source_size);
    uint64_t end = RandomPlace(random, source, source_size);
    if (begin > end) std::swap(begin, end);
    if (begin == end) continue;
    uint64_t to = random.Below(target.expected().size() + 1);
    if (random.OneIn(3)) to = target.expected().size();
    if (random.OneIn(4)) to = begin;
    if (holes && random.OneIn(8)) to = target.expected().size() + random.Below(50'000);
    if (!holes) to = std::min<uint64_t>(to, target.expected().size());
    const uint64_t length = end - begin;
    if (&source == &target && begin < to + length && to < end) continue;
    if (to + length > 6'000'000) continue;
    target.Clone(source, {.source_offset = begin, .target_offset = to, .length = length});
    target.RequireContent();
    if (random.OneIn(2)) target.FoldAndCheck();
    if (!holes && random.OneIn(4)) {
      target.FoldAndCheck();
      REQUIRE((target.recipe() == CanonicalRecipe(store, target.expected())));
    }
  }
  for (TestFile* file : {&a, &b}) {
    file->FoldAndCheck();
    if (!holes) REQUIRE((file->recipe() == CanonicalRecipe(store, file->expected())));
  }
}

TEST_CASE("cloning a long range reads only at its ends") {
  ChunkStoreFixture store(0);  // each Get of a chunk reads it
  TestFile source(store);
  const Bytes content = RandomBytes(5, 20 * kMiB);
  source.Write(0, content);
  source.FoldAndCheck();
  TestFile target(store);
  target.Write(0, RandomBytes(6, kMiB));
  target.FoldAndCheck();
  const uint64_t chunks = store.StoredChunks();
  const uint64_t reads = store.Reads();
  target.Clone(source,
               {.source_offset = 12'345, .target_offset = 500'001, .length = 18 * kMiB + 1});
  // Only recipe nodes are read; there are some 2,300 chunks in the range.
  CHECK(store.Reads() - reads < 60);
  CHECK(target.overlay().plain_bytes() == 0);
  CHECK(target.overlay().slices() <= 4);
  target.Fold();
  CHECK(store.StoredChunks() - chunks < 40);
  CHECK(store.Reads() - reads < 200);
  target.RequireContent();
}

TEST_CASE("a clone that cannot read the source's recipe leaves the target unchanged") {
  ChunkStoreFixture store;
  TestFile source(store);
  source.Write(0, RandomBytes(7, 3 * kMiB));
  source.FoldAndCheck();
  InodeRecord broken = source.record();
  REQUIRE(broken.recipe.height > 0);
  for (RecipeChild& child : broken.recipe.children) child.name.bytes[0] ^= 1;
  InodeRecord target;
  Overlay overlay;
  const Status status =
      CloneIntoFile(store.chunks(), broken,
                    {.source_offset = 100, .target_offset = 0, .length = kMiB}, target, overlay);
  REQUIRE_FALSE(status.ok());
  REQUIRE(target.size == 0);
  REQUIRE((target.recipe == Recipe{}));
  REQUIRE(overlay.empty());
}

TEST_CASE("if data follows a clone, the chunk that ended with the source file is cut again") {
  ChunkStoreFixture store;
  TestFile source(store);
  source.Write(0, RandomBytes(8, 100'000));
  TestFile target(store);
  target.Write(0, RandomBytes(9, kMiB));
  target.FoldAndCheck();
  // The clone ends at a boundary of the target's chunks, so that no chunk of the target has to be
  // cut again.
  uint64_t boundary = 0;
  for (const RecipeEntry& entry : target.Entries()) {
    if (boundary >= 500'000) break;
    boundary += entry.length;
  }
  target.Clone(source,
               {.source_offset = 0, .target_offset = boundary - 100'000, .length = 100'000});
  target.FoldAndCheck();
  CHECK((target.recipe() == CanonicalRecipe(store, target.expected())));
}

}  // namespace siltfs::testing
