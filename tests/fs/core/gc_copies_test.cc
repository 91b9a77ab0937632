// Garbage collection and chunks with several copies (fs/chunks/secondary_copies.h).
#include <fmt/format.h>

#include <set>

#include "tests/fs/core/garbage_store.h"

namespace siltfs::testing {

// The index points to the copy that a collection has made. After this copy is removed as unused,
// only a cached footer part leads to the first copy.
TEST_CASE("a chunk without an index entry is no duplicate of a copy that GC left behind") {
  GarbageStore store(GarbageStore::kLargeSegment);
  const auto [kept, spoilt, others] = store.LeaveCopyBehind();
  REQUIRE_OK(store.fs->Unlink(kRootInode, "kept"));
  store.Collect();
  // Brings a footer part of the first segment into the cache.
  WriteLargeFile(*store.fs, "again", ByteView(others).first(60'000));
  WriteLargeFile(*store.fs, "kept again", kept);
  store.End();
  CHECK(store.Findings() == std::set<std::string>{});

  store.Begin();
  const auto again = Resolve(*store.fs, "kept again");
  REQUIRE_OK(again);
  CHECK(ReadFile(*store.fs, *again).value() == kept);
  REQUIRE_OK(store.fs->Unlink(kRootInode, "spoilt"));
  REQUIRE_OK(store.fs->Unlink(kRootInode, "again"));
  store.Collect();
  CHECK(ReadFile(*store.fs, *again).value() == kept);
  store.End();
  CHECK(store.Findings() == std::set<std::string>{});
}

// The index may lack two kinds of entries without harm: entries of unreferenced chunks, and entries
// of the last blocks, which the next mount replays.
TEST_CASE("after a crash fsck does not report dead chunks and entries to be replayed") {
  GarbageStore store;
  store.Begin();
  store.WriteRandom(1, 50'000);
  store.End();
  const std::set<ChunkName> others = store.Indexed();
  store.Begin();
  WriteLargeFile(*store.fs, "dead", RandomBytes(2, 50'000));
  store.End();
  REQUIRE(store.Forget([&](const ChunkName& name) { return !others.contains(name); }) > 0);
  CHECK(store.Findings(/*copies=*/false) == std::set<std::string>{"not-indexed"});
  store.Begin();
  REQUIRE_OK(store.fs->Unlink(kRootInode, "dead"));
  WriteLargeFile(*store.fs, "new", RandomBytes(5, 15'000));
  REQUIRE_OK(store.fs->SyncAll());
  store.fs.reset();
  CHECK(store.Findings(/*copies=*/false) == std::set<std::string>{});
  store.Begin();
  store.RequireFiles(*store.fs);
  store.End();
  CHECK(store.Findings(/*copies=*/false) == std::set<std::string>{});
}

TEST_CASE("a collection restores entries of chunks in use that the index does not know") {
  GarbageStore store;
  store.Begin();
  for (uint64_t i = 0; i < 10; ++i) store.WriteRandom(i, 50'000);
  store.End();
  const uint64_t forgotten =
      store.Forget([](const ChunkName& name) { return name.bytes[0] % 4 == 0; });
  REQUIRE(forgotten > 5);
  CHECK(store.Findings() == std::set<std::string>{"copies-not-noted", "not-indexed"});
  store.Begin();
  store.Collect(/*dry_run=*/true);
  store.End();
  CHECK(store.Findings() == std::set<std::string>{"copies-not-noted", "not-indexed"});
  store.Begin();
  store.Collect();
  store.RequireAll();
}

// While the collection reads the segment, "again" is written. Put finds no index entry for its
// chunk, so it stores a second copy. Before this copy is appended, the collection makes an entry
// for the first copy.
TEST_CASE("a note stays while a second copy of one of its segment's chunks is being written") {
  constexpr uint32_t kSegment = 256u << 10;
  GarbageStore store(kSegment);
  store.Begin();
  const Bytes dead = RandomBytes(1, 3'000);
  WriteLargeFile(*store.fs, "dead", dead);
  REQUIRE_OK(store.fs->SyncAll());
  store.End();
  const std::set<ChunkName> first = store.Indexed();
  store.Begin();
  WriteLargeFile(*store.fs, "others", RandomBytes(4, 2 * kSegment));
  store.End();
  REQUIRE(store.Forget([&](const ChunkName& name) { return first.contains(name); }) > 0);
  store.NoteSegment(1);
  store.Begin();
  REQUIRE_OK(store.fs->Unlink(kRootInode, "dead"));
  REQUIRE_OK(store.fs->SyncAll());
  bool wrote = false;
  store.fault_env->BeforeRead("00000001.seg", [&] {
    WriteLargeFile(*store.fs, "again", dead);
    wrote = true;
  });
  CHECK(store.Collect().segments_removed == 0);
  CHECK(wrote);
  store.End();
  CHECK(store.Findings() == std::set<std::string>{});
}

// The collection makes entries for the chunks of a noted segment that the index does not know. A
// file refers to one of them, and a crash loses the entry.
TEST_CASE("a crash loses an entry that a collection made for a copy in a noted segment") {
  constexpr uint32_t kSegment = 1u << 20;
  GarbageStore store(kSegment);
  store.Begin();
  WriteLargeFile(*store.fs, "live", RandomBytes(3, 700'000));
  store.End();
  const std::set<ChunkName> live = store.Indexed();
  store.Begin();
  const Bytes dead = RandomBytes(1, 3'000);
  const Bytes twice = RandomBytes(2, 10'000);
  WriteLargeFile(*store.fs, "dead", dead);
  WriteLargeFile(*store.fs, "twice", twice);
  store.End();
  std::set<ChunkName> forgotten = store.Indexed();
  std::erase_if(forgotten, [&](const ChunkName& name) { return live.contains(name); });
  store.Begin();
  WriteLargeFile(*store.fs, "others", RandomBytes(4, 2 * kSegment));  // seals the first segment
  store.End();
  REQUIRE(store.Forget([&](const ChunkName& name) { return forgotten.contains(name); }) > 2);
  store.NoteSegment(1);
  store.Begin();
  REQUIRE_OK(store.fs->Unlink(kRootInode, "dead"));
  // The index leads to the second copies from now on, so the note of the first segment stays.
  WriteLargeFile(*store.fs, "twice again", twice);
  REQUIRE_OK(store.fs->SyncAll());
  CHECK(store.Collect().segments_removed == 0);
  WriteLargeFile(*store.fs, "again", dead);
  REQUIRE_OK(store.fs->SyncAll());
  store.fs.reset();
  CHECK(store.Findings() == std::set<std::string>{});
  store.Begin();
  const auto again = Resolve(*store.fs, "again");
  REQUIRE_OK(again);
  CHECK(ReadFile(*store.fs, *again).value() == dead);
  store.End();
  CHECK(store.Findings() == std::set<std::string>{});
}

TEST_CASE("the notes of a collection are removed once the index points to every copy") {
  GarbageStore store;
  store.Begin();
  for (uint64_t i = 0; i < 40; ++i) store.WriteRandom(i, 50'000);
  for (uint64_t i = 0; i < 40; ++i) {
    if (i % 2 != 0) store.Delete(fmt::format("random {}", i));
  }
  CHECK(store.Collect().segments_removed > 10);
  store.End();
  // Only unsealed segments with copies may still be noted: at most one with chunks and one with
  // nodes.
  CHECK(store.Noted().size() <= 2);
  store.Begin();
  store.RequireAll();
}

}  // namespace siltfs::testing
