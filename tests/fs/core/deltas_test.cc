// Stores with deltas as seen by a user of the file system: garbage collection keeps the bases, and
// damage of a base costs exactly its dependents.
#include <string>
#include <utility>

#include "fs/interface/store_maintenance.h"
#include "fs/open/rebuild_index.h"
#include "tests/fs/core/delta_files.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr size_t kFileBytes = DeltaFiles::kFileBytes;

}  // namespace

TEST_CASE("a store with deltas comes back whole, and fsck finds nothing", "[race]") {
  DeltaFiles store;
  store.Fill(8);
  store.RequireAll();
  store.End();
  store.RequireOpensWhole(store.env);
  store.Begin();
}

TEST_CASE("the index is rebuilt from segments with deltas") {
  DeltaFiles store;
  store.Fill(6);
  store.End();
  IndexRebuildOptions options;
  options.store = store.path;
  options.segments = SealedSegments(store.env);
  REQUIRE_OK(RebuildIndex(store.env, options));
  store.Begin();
  store.RequireAll();
}

TEST_CASE("garbage collection keeps the bases of deltas, and removes them after their dependents") {
  DeltaFiles store;
  // The segments of the bases have other files, which are deleted.
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteBase(seed);
    store.WriteBase(100 + seed);
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.WriteSimilar(seed);
  store.Settle();
  const size_t deltas = store.CountDeltas();
  REQUIRE(deltas > 8);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.Delete(DeltaFiles::Name("base", seed));
    store.Delete(DeltaFiles::Name("base", 100 + seed));
  }
  CHECK(store.Collect().segments_removed > 4);
  CHECK(store.CountDeltas() == deltas);
  store.RequireAll();
  // The bases are live: they are not copied again and again.
  CHECK(store.Collect().segments_removed == 0);
  const uint64_t with_bases = store.Stats().stored_bytes;

  for (uint64_t seed = 1; seed <= 8; ++seed) store.Delete(DeltaFiles::Name("similar", seed));
  CHECK(store.Collect().segments_removed > 0);
  store.RequireAll();
  CHECK(store.Collect().segments_removed > 0);
  store.RequireAll();
  CHECK(store.CountDeltas() == 0);
  // The bases and the deltas are gone.
  CHECK(store.Stats().stored_bytes + 8 * kFileBytes < with_bases + kFileBytes);
}

TEST_CASE("garbage collection copies live deltas as whole chunks", "[race]") {
  DeltaFiles store;
  store.Fill(8);
  for (uint64_t seed = 1; seed <= 8; seed += 2) store.Delete(DeltaFiles::Name("similar", seed));
  const size_t before = store.CountDeltas();
  CHECK(store.Collect().segments_removed > 0);
  CHECK(store.CountDeltas() < before);
  store.RequireAll();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  store.Collect();
  store.RequireAll();
  store.Collect();
  store.RequireAll();
}

// Nothing but deltas in victims needs the bases. A segment of bases has no other live chunk, and
// must not be removed before the deltas are copied.
TEST_CASE("victims whose deltas need the chunks of other victims are collected together") {
  DeltaFiles store;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteBase(seed);
    store.WriteBase(100 + seed);
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteSimilar(seed);
    store.Write("other", seed, RandomBytes(200 + seed, kFileBytes));
  }
  store.Settle();
  REQUIRE(store.CountDeltas() > 8);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.Delete(DeltaFiles::Name("base", seed));
    store.Delete(DeltaFiles::Name("base", 100 + seed));
    store.Delete(DeltaFiles::Name("other", seed));
  }
  const GarbageReport report = store.Collect();
  CHECK(report.segments_removed > 8);
  CHECK(report.segments_left == 0);
  store.RequireAll();
  store.Collect();
  store.RequireAll();
}

// The test chooser breaks the rule for choosers: the base lies in a victim.
TEST_CASE("a victim that a new delta needs is not removed", "[race]") {
  DeltaFiles store;
  // Each segment of bases has a chunk that stays live.
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteBase(seed);
    store.Write("other", seed, RandomBytes(200 + seed, 10'000));
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.WriteSimilar(seed);
  store.Write("filler", 99, RandomBytes(99, 160'000));
  REQUIRE_OK(store.fs->SyncAll());
  store.Collect(/*dry_run=*/true);
  for (uint64_t seed = 1; seed <= 8; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  uint64_t rewritten = 0;
  store.fault_env->before_copying = [&] {
    const auto report = store.fs->maintenance().Recompress();
    REQUIRE_OK(report);
    rewritten = report->segments_rewritten;
  };
  CHECK(store.Collect().segments_left > 0);
  CHECK(rewritten > 4);
  CHECK(store.CountDeltas() > 8);
  store.RequireAll();
  CHECK(store.Collect().segments_removed > 0);
  store.RequireAll();
}

// While the segment of a base is a victim, the content of the base is written again. This new copy
// lies in a segment that is recompressed later, and there it becomes a delta itself.
TEST_CASE("a base stays whole if a newer copy of it becomes a delta") {
  DeltaFiles store;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteBase(seed);
    store.WriteBase(100 + seed);
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.WriteSimilar(seed);
  store.Settle();
  store.chooser.learns = true;  // from now on, the files with variant 9 are the bases
  for (uint64_t seed = 1; seed <= 8; ++seed)
    store.Write("base'", seed, SimilarTo(RandomBytes(seed, kFileBytes), 9));
  store.Settle();
  store.chooser.learns = false;
  const size_t deltas = store.CountDeltas();
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.Delete(DeltaFiles::Name("base", seed));
    store.Delete(DeltaFiles::Name("base", 100 + seed));
  }
  store.fault_env->before_copying = [&] {
    for (uint64_t seed = 1; seed <= 8; ++seed)
      store.Write("again", seed, RandomBytes(seed, kFileBytes));
    REQUIRE_OK(store.fs->SyncAll());
  };
  CHECK(store.Collect().segments_removed > 4);
  store.Settle();
  REQUIRE(store.CountDeltas() > deltas);
  store.RequireAll();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.Delete(DeltaFiles::Name("again", seed));
  store.Collect();
  store.RequireAll();
}

// The segment with the moved bases is unsealed when the store is closed, or when the process is
// killed. If it was recompressed later, its chunks could become deltas.
TEST_CASE("a moved base stays whole after a mount") {
  DeltaFiles store;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.WriteBase(seed);
    store.WriteBase(100 + seed);
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 8; ++seed) store.WriteSimilar(seed);
  store.Settle();
  store.chooser.learns = true;  // from now on, the files with variant 9 are the bases
  for (uint64_t seed = 1; seed <= 8; ++seed)
    store.Write("base'", seed, SimilarTo(RandomBytes(seed, kFileBytes), 9));
  store.Settle();
  store.chooser.learns = false;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    store.Delete(DeltaFiles::Name("base", seed));
    store.Delete(DeltaFiles::Name("base", 100 + seed));
  }
  CHECK(store.Collect().segments_removed > 4);
  if (GENERATE(true, false)) {
    store.End();
  } else {
    store.fs.reset();
  }
  store.Begin();
  store.Settle();
  store.RequireAll();
  store.Settle();
  store.RequireAll();
}

TEST_CASE("a damaged base damages exactly the files that depend on it") {
  DeltaFiles store;
  store.Fill(6);
  for (uint64_t seed = 1; seed <= 6; ++seed) store.Delete(DeltaFiles::Name("base", seed));
  store.End();
  REQUIRE(store.SpoilBase(3) == 1);
  CHECK(store.Findings().empty());  // a check without payloads reads no base
  store.Begin();
  const auto scrub = store.fs->maintenance().Scrub(ScrubMode::kFull);
  REQUIRE_OK(scrub);
  CHECK(scrub->damaged_blocks > 1);
  CHECK(scrub->damaged_files >= 1);
  size_t unreadable = 0;
  for (const auto& [name, content] : store.files) {
    const auto inode = Resolve(*store.fs, name);
    REQUIRE_OK(inode);
    const auto read = ReadFile(*store.fs, *inode);
    if (read.ok()) {
      const bool same = *read == content;
      REQUIRE(same);
    } else {
      REQUIRE_CODE(read, kCorruption);
      ++unreadable;
    }
  }
  CHECK(unreadable == scrub->damaged_files);
  CHECK(unreadable < store.files.size() / 2);
  // The next write of the same content heals the file.
  const std::string name = DeltaFiles::Name("similar", 3);
  WriteLargeFile(*store.fs, "again", store.files.at(name));
  REQUIRE_OK(store.fs->SyncAll());
  const auto healed = ReadFile(*store.fs, *Resolve(*store.fs, name));
  REQUIRE_OK(healed);
  CHECK(*healed == store.files.at(name));
}

// A chunk is written again during a collection that cannot copy its segment. The second copy
// becomes a delta, whose base rots.
TEST_CASE("a collection keeps a whole copy if the other copy is a delta without a base") {
  const bool collect = GENERATE(true, false);
  DeltaFiles store;
  for (uint64_t seed = 1; seed <= 4; ++seed) store.WriteBase(seed);
  store.Settle();
  store.chooser.may_offer = [](const BaseRef&) { return false; };
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    store.WriteSimilar(seed);
    store.Write("dead", seed, RandomBytes(300 + seed, kFileBytes));
  }
  store.Settle();
  for (uint64_t seed = 1; seed <= 4; ++seed) store.Delete(DeltaFiles::Name("dead", seed));
  store.fault_env->before_copying = [&] {
    for (uint64_t seed = 1; seed <= 4; ++seed)
      store.Write("again", seed, SimilarTo(RandomBytes(seed, kFileBytes), 1));
    REQUIRE_OK(store.fs->SyncAll());
    store.fault_env->SetAvailable(0);
  };
  REQUIRE_CODE(store.fs->maintenance().CollectGarbage(false), kNoSpace);
  store.fault_env->SetAvailable(std::nullopt);
  store.chooser.may_offer = nullptr;
  REQUIRE(store.CountDeltas() == 0);
  store.Settle();
  REQUIRE(store.CountDeltas() > 0);
  store.End();
  const Bytes base = RandomBytes(3, kFileBytes);
  const std::string_view part = AsText(ByteView(base).subspan(30'000, 40));
  const auto segments = SegmentsOf(store.env, store.path);
  const auto listing = segments->List();
  REQUIRE_OK(listing);
  bool changed = false;
  for (const SegmentId id : listing->ids) {
    if (changed) break;
    ChangeSegment(store.env, store.path, id, [&](std::string& all) {
      const size_t place = all.find(part);
      if (place == std::string::npos) return;
      all[place] ^= 1;
      changed = true;
    });
  }
  REQUIRE(changed);
  store.Begin();
  if (collect) {
    const auto report = store.fs->maintenance().CollectGarbage(false);
    REQUIRE_OK(report);
    CHECK(report->segments_removed > 0);
  }
  const std::string name = DeltaFiles::Name("similar", 3);
  const auto file = Resolve(*store.fs, name);
  REQUIRE_OK(file);
  const auto read = ReadFile(*store.fs, *file);
  REQUIRE_OK(read);
  CHECK(*read == store.files.at(name));
}

}  // namespace siltfs::testing
