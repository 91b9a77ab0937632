// The mark of garbage collection finds all references, and never guesses that a chunk is dead.
#include "fs/dedup/mark.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/meta/inode_record.h"
#include "fs/meta/overlay_extent.h"
#include "fs/meta/recipe_builder.h"
#include "fs/meta/schema.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fs/meta/memory_kv_store.h"
#include "tests/fs/meta/recipe_test_support.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr const char* kSpill = "/spill";

InodeRecord FileOf(const Recipe& recipe) {
  InodeRecord record;
  record.mode = 0100644;
  record.links = 1;
  record.size = recipe.size();
  record.recipe = recipe;
  record.recipe_limit = record.size;
  return record;
}

ChunkName NumberedName(uint64_t number) {
  Random random(number);
  return RandomName(random);
}

Entries NumberedChunks(uint64_t first, uint64_t count) {
  Entries entries;
  for (uint64_t i = 0; i < count; ++i) {
    entries.push_back(RecipeEntry::Chunk(NumberedName(first + i), 8192));
  }
  return entries;
}

// Metadata and nodes in memory, and the names that they refer to.
struct Metadata {
  Metadata() : kv(OpenMemoryKvStore(disk)) {}

  void Set(std::string key, std::string value) {
    REQUIRE_OK(kv->Write({{std::move(key), std::move(value)}}));
  }
  void AddFile(const Recipe& recipe) { Set(InodeKey(next_inode++), FileOf(recipe).Encode()); }
  void AddFile(const Entries& entries) {
    for (const RecipeEntry& entry : entries) {
      if (!entry.is_hole()) expected.insert(entry.name);
    }
    AddFile(Build(nodes, entries));
  }
  void AddOverlay(uint64_t inode, uint64_t offset, const std::vector<ChunkName>& names) {
    OverlayExtent extent;
    extent.kind = OverlayExtent::Kind::kChunks;
    for (const ChunkName& name : names) {
      extent.slices.push_back({.name = name, .chunk_length = 100, .skip = 0, .length = 50});
      expected.insert(name);
    }
    Set(OverlayKey(inode, offset), extent.Encode());
  }
  void ExpectAllNodes() {
    for (const auto& [name, bytes] : nodes.nodes) expected.insert(name);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const { return kv->Snapshot(); }

  MemoryDisk disk;
  std::unique_ptr<KvStore> kv;
  MemoryNodeStore nodes;
  std::set<ChunkName> expected;
  uint64_t next_inode = 2;
};

std::set<ChunkName> Visited(Metadata& metadata) {
  std::set<ChunkName> names;
  REQUIRE_OK(ForEachReference(*metadata.Snapshot(), metadata.nodes, {}, [&](const ChunkName& name) {
    names.insert(name);
    return Status::Ok();
  }));
  return names;
}

Status Walk(Metadata& metadata, const MarkPace& pace = {}) {
  return ForEachReference(*metadata.Snapshot(), metadata.nodes, pace,
                          [](const ChunkName&) { return Status::Ok(); });
}

// A node under a name that the test chooses.
RecipeChild Plant(MemoryNodeStore& nodes, const ChunkName& name, const RecipeNode& node) {
  const Bytes bytes = node.level == 0 ? EncodeNode(node.entries, node.totals)
                                      : EncodeNode(node.level, node.children, node.totals);
  nodes.nodes[name] = std::make_shared<const Bytes>(bytes);
  return {name, static_cast<uint32_t>(bytes.size()), node.totals.covered_bytes,
          node.totals.chunk_count, node.totals.hole_bytes};
}

RecipeNode LeafOf(const Entries& entries) {
  RecipeNode leaf;
  leaf.entries = entries;
  for (const RecipeEntry& entry : entries) REQUIRE(leaf.totals.Add(entry));
  return leaf;
}

RecipeNode InnerOf(uint8_t level, const std::vector<RecipeChild>& children) {
  RecipeNode node;
  node.level = level;
  node.children = children;
  for (const RecipeChild& child : children) REQUIRE(node.totals.Add(child));
  return node;
}

Recipe RootOf(uint8_t height, const std::vector<RecipeChild>& children) {
  Recipe recipe;
  recipe.height = height;
  recipe.children = children;
  return recipe;
}

// An index of numbered chunks. Files refer to all chunks that are not dead, and to some of these
// often.
struct Store {
  static constexpr uint64_t kChunks = 9000;
  static constexpr uint64_t kSegmentChunks = 100;

  explicit Store(IndexEngine engine) {
    REQUIRE_OK(env.CreateDirectory("/index"));
    if (engine == IndexEngine::kMap) {
      auto opened = OpenIndex(env, {.engine = engine, .directory = "/index"});
      REQUIRE_OK(opened);
      index = std::move(*opened);
    } else {
      auto opened = OpenSiltIndex(env, {.directory = "/index",
                                        .partition_bits = 2,
                                        .bucket_bits = 5,
                                        .hash_secret = 5,
                                        .sort_memory_bytes = 8000,
                                        .background = false});
      REQUIRE_OK(opened);
      index = std::move(*opened);
    }
    std::vector<IndexEntry> entries;
    for (uint64_t i = 0; i < kChunks; ++i) {
      entries.push_back({NumberedName(i),
                         {.segment = static_cast<SegmentId>(1 + i / kSegmentChunks),
                          .ordinal = static_cast<uint32_t>(i % kSegmentChunks)}});
    }
    REQUIRE_OK(index->Put(entries, 1));
    // Some chunks have a reference but no entry; every tenth has an entry but no reference.
    Entries live;
    for (uint64_t i = 0; i < kChunks + 500; ++i) {
      if (IsDead(i)) continue;
      live.push_back(RecipeEntry::Chunk(NumberedName(i), 8192));
      if (i < kChunks) ++expected[static_cast<SegmentId>(1 + i / kSegmentChunks)];
    }
    metadata.AddFile(live);
    metadata.AddFile(live);
    metadata.AddFile(NumberedChunks(51, 9));  // live ones once more
    for (uint64_t i = 0; i < 20; ++i) metadata.AddFile(NumberedChunks(51, 8));
  }
  // Dead are every tenth chunk, and all chunks of one segment.
  static bool IsDead(uint64_t number) {
    return number % 10 == 0 || (number >= 700 && number < 700 + kSegmentChunks);
  }

  void RequireCounts(const LiveCounts& counts) {
    uint64_t live = 0;
    for (const auto& [segment, chunks] : expected) live += chunks;
    CHECK(counts.live == live);
    CHECK(counts.dead_entries == kChunks - live);
    CHECK(counts.references >= live);
    CHECK(std::map<SegmentId, uint32_t>(counts.live_chunks.begin(), counts.live_chunks.end()) ==
          expected);
  }
  Result<LiveCounts> Count(const MarkOptions& options) {
    return CountLive(env, *metadata.Snapshot(), metadata.nodes, *index, options);
  }
  bool SpillIsGone() {
    const auto listed = env.ListDirectory(kSpill);
    return !listed.ok() && listed.status().Is(StatusCode::kNotFound);
  }

  SimEnv env;
  Metadata metadata;
  std::unique_ptr<ChunkIndex> index;
  std::map<SegmentId, uint32_t> expected;
};

class Snatched final : public KvSnapshot {
 public:
  explicit Snatched(std::shared_ptr<const KvSnapshot> whole) : whole_(std::move(whole)) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return whole_->Get(key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<Iterator>(whole_->NewIteratorBelow(end));
  }

 private:
  // An iterator that fails after the first few entries.
  class Iterator final : public KvIterator {
   public:
    explicit Iterator(std::unique_ptr<KvIterator> inner) : inner_(std::move(inner)) {}
    void Seek(std::string_view key) override { inner_->Seek(key); }
    void Next() override {
      ++moves_;
      inner_->Next();
    }
    bool Valid() const override { return moves_ < 3 && inner_->Valid(); }
    std::string_view key() const override { return inner_->key(); }
    std::string_view value() const override { return inner_->value(); }
    Status status() const override {
      return moves_ < 3 ? Status::Ok() : Status(StatusCode::kIoError, "cannot read on");
    }

   private:
    std::unique_ptr<KvIterator> inner_;
    int moves_ = 0;
  };
  std::shared_ptr<const KvSnapshot> whole_;
};

std::vector<FooterChunk> FooterOf(const std::vector<ChunkName>& names) {
  std::vector<FooterChunk> chunks;
  for (const ChunkName& name : names) chunks.push_back({.name_prefix = name.Prefix64(), .tag = 9});
  return chunks;
}

}  // namespace

TEST_CASE("all names of files, trees, overlays and open files without a name are visited") {
  const uint64_t seed = GENERATE(range(1, 6));
  Random random(seed);
  Metadata metadata;
  InodeRecord directory;
  directory.mode = 0040755;
  metadata.Set(InodeKey(1), directory.Encode());
  InodeRecord link;
  link.mode = 0120777;
  link.target = "elsewhere";
  metadata.Set(InodeKey(metadata.next_inode++), link.Encode());
  for (const size_t count : {0, 1, 32, 33, 100, 700, 5000, 20'000}) {
    metadata.AddFile(RandomEntries(random, count, {.holes_of_16 = 2}));
    if (random.OneIn(2)) metadata.Set(OrphanKey(metadata.next_inode - 1), "");
  }
  metadata.AddFile(RandomEntries(random, 3000, {.names = Names::kFew, .holes_of_16 = 0}));
  metadata.ExpectAllNodes();
  // A tree to which nothing refers any more.
  Build(metadata.nodes, RandomEntries(random, 400, {}));
  // Overlays of a file that exists, and of a file that does not.
  metadata.AddOverlay(3, 0, {RandomName(random), RandomName(random)});
  metadata.AddOverlay(3, 1 << 20, {RandomName(random)});
  metadata.AddOverlay(1'000'000, 5, {RandomName(random)});
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kPlain;
  extent.plain = "abc";
  metadata.Set(OverlayKey(4, 0), extent.Encode());
  extent.kind = OverlayExtent::Kind::kHole;
  extent.length = 9;
  metadata.Set(OverlayKey(4, 9), extent.Encode());
  CHECK((Visited(metadata) == metadata.expected));
}

TEST_CASE("chunks of a recipe beyond its limit are still referred to") {
  Metadata metadata;
  const Entries entries = NumberedChunks(0, 10);
  InodeRecord record = FileOf(Build(metadata.nodes, entries));
  record.recipe_limit = record.size = 8192;
  metadata.Set(InodeKey(2), record.Encode());
  CHECK(Visited(metadata).size() == 10);
}

TEST_CASE("nodes that recipes share are walked once") {
  Metadata metadata;
  Random random(1);
  Entries entries = RandomEntries(random, 9000, {});
  for (int version = 0; version < 8; ++version) {
    entries[random.Below(entries.size())] = RecipeEntry::Chunk(RandomName(random), 77);
    metadata.AddFile(entries);
  }
  metadata.ExpectAllNodes();
  metadata.nodes.ResetCounts();
  CHECK((Visited(metadata) == metadata.expected));
  CHECK(metadata.nodes.gets == metadata.nodes.nodes.size());
}

TEST_CASE("nodes are distinguished, however alike their names are") {
  const size_t differs_at = GENERATE(8U, 12U, 19U);
  Metadata metadata;
  ChunkName first = NumberedName(1);
  ChunkName second = first;
  second.bytes[differs_at] ^= 1;
  metadata.AddFile(RootOf(1, {Plant(metadata.nodes, first, LeafOf(NumberedChunks(100, 70))),
                              Plant(metadata.nodes, second, LeafOf(NumberedChunks(200, 70)))}));
  const auto names = Visited(metadata);
  CHECK(names.contains(NumberedName(150)));
  CHECK(names.contains(NumberedName(250)));
  CHECK(names.size() == 142);
}

TEST_CASE("a tree that refers to one chunk half a billion times is walked in no time") {
  Metadata metadata;
  RecipeChild child = Plant(metadata.nodes, NumberedName(0), LeafOf(NumberedChunks(100, 1)));
  for (uint8_t level = 1; level < Recipe::kMaxHeight; ++level) {
    child = Plant(metadata.nodes, NumberedName(level),
                  InnerOf(level, std::vector<RecipeChild>(16, child)));
  }
  metadata.AddFile(RootOf(Recipe::kMaxHeight, {child, child}));
  CHECK(Visited(metadata).size() == 9);
  CHECK(metadata.nodes.gets == 8);
}

TEST_CASE("a node that refers to itself is walked once") {
  Metadata metadata;
  const ChunkName name = NumberedName(1);
  const RecipeChild leaf = Plant(metadata.nodes, NumberedName(2), LeafOf(NumberedChunks(5, 1)));
  const RecipeChild self = Plant(metadata.nodes, name, InnerOf(1, {leaf}));
  const RecipeChild around = Plant(metadata.nodes, name, InnerOf(1, {self}));
  metadata.AddFile(RootOf(2, {around}));
  CHECK((Visited(metadata) == std::set<ChunkName>{name}));
  CHECK(metadata.nodes.gets == 1);
}

TEST_CASE("unreadable or malformed metadata ends every mark, and nothing is called dead") {
  Store store(IndexEngine::kMap);
  Metadata& metadata = store.metadata;
  StatusCode expected = StatusCode::kCorruption;
  const int damage = GENERATE(range(0, 7));
  INFO("damage " << damage);
  const auto some_node = std::next(metadata.nodes.nodes.begin(), 7);
  std::shared_ptr<const KvSnapshot> snapshot;
  if (damage == 0) {
    metadata.nodes.nodes.erase(some_node);
    expected = StatusCode::kNotFound;
  } else if (damage == 1) {
    some_node->second = std::make_shared<const Bytes>(some_node->second->size(), 7);
  } else if (damage == 2) {
    some_node->second = std::next(some_node)->second;
  } else if (damage == 3) {
    std::string record = FileOf(Build(metadata.nodes, NumberedChunks(0, 20))).Encode();
    record.resize(record.size() - 1);
    metadata.Set(InodeKey(9), record);
  } else if (damage == 4) {
    metadata.Set(OverlayKey(3, 0), "\3" + std::string(28, 'x'));
  } else if (damage == 5) {
    metadata.nodes.ResetCounts();
    metadata.nodes.failing_get = 20;
    expected = StatusCode::kIoError;
  } else {
    expected = StatusCode::kIoError;
    snapshot = std::make_shared<Snatched>(metadata.Snapshot());
  }
  if (!snapshot) snapshot = metadata.Snapshot();
  const auto code = StatusCodeName(expected);
  const auto again = [&] { metadata.nodes.gets = 0; };
  CHECK(StatusCodeName(ForEachReference(*snapshot, metadata.nodes, {}, [](const ChunkName&) {
                         return Status::Ok();
                       }).code()) == code);
  again();
  CHECK(StatusCodeName(CountLive(store.env, *snapshot, metadata.nodes, *store.index,
                                 {.spill_directory = kSpill, .memory_bytes = 4096, .pace = {}})
                           .status()
                           .code()) == code);
  CHECK(store.SpillIsGone());
  again();
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(1), NumberedName(900'000)}));
  CHECK(StatusCodeName(mark.Mark(*snapshot, metadata.nodes, {}).code()) == code);
  CHECK(mark.IsLive(1, 0));
  CHECK(mark.IsLive(1, 1));
  CHECK(mark.LiveCount(1) == 2);
}

TEST_CASE("damage is reported with the inode that it is in") {
  Metadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  metadata.Set(InodeKey(77), "nonsense");
  CHECK(Walk(metadata).path() == "inode 77");
}

TEST_CASE("marks call their pace at intervals, and end when it fails") {
  Store store(IndexEngine::kSilt);
  uint64_t calls = 0;
  uint64_t stop_at = UINT64_MAX;
  const MarkPace pace = [&] {
    if (++calls < stop_at) return Status::Ok();
    return Status(StatusCode::kInterrupted, "enough");
  };
  const auto count = [&] {
    calls = 0;
    return store.Count({.spill_directory = kSpill, .memory_bytes = 4096, .pace = pace});
  };
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(900'000)}));
  const auto mark_segment = [&] {
    calls = 0;
    return mark.Mark(*store.metadata.Snapshot(), store.metadata.nodes, pace);
  };
  const auto walk = [&] {
    calls = 0;
    return Walk(store.metadata, pace);
  };
  REQUIRE_OK(walk());
  const uint64_t of_walk = calls;
  CHECK(of_walk >= 3);
  REQUIRE_OK(mark_segment());
  CHECK(calls == of_walk);
  REQUIRE_OK(count());
  CHECK(calls >= of_walk + 2);  // for the index's entries, too
  const uint64_t of_count = calls;
  for (stop_at = 1; stop_at <= of_count; ++stop_at) {
    REQUIRE_CODE(count(), kInterrupted);
    CHECK(store.SpillIsGone());
    if (stop_at > of_walk) continue;
    REQUIRE_CODE(walk(), kInterrupted);
    REQUIRE_CODE(mark_segment(), kInterrupted);
    CHECK(mark.IsLive(1, 0));
  }
  REQUIRE_OK(count());
}

TEST_CASE("live chunks are counted by segment, with any amount of memory") {
  Store store(GENERATE(IndexEngine::kMap, IndexEngine::kSilt));
  const size_t memory = GENERATE(0U, 4096U, 20'000U, 8U << 20);
  const auto counts = store.Count({.spill_directory = kSpill, .memory_bytes = memory, .pace = {}});
  REQUIRE_OK(counts);
  store.RequireCounts(*counts);
  CHECK((counts->spilled_bytes > 0) == (memory < 60'000));
  CHECK(counts->passes == 1);
  CHECK(store.SpillIsGone());
}

TEST_CASE("chunks with names of one order in the index are live or dead together") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto index = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(index);
  Metadata metadata;
  metadata.AddFile(NumberedChunks(0, 1));
  std::vector<IndexEntry> entries;
  for (const uint64_t number : {0, 1}) {
    for (uint8_t last = 0; last < 3; ++last) {
      ChunkName name = NumberedName(number);
      name.bytes.back() ^= last;
      entries.push_back({name, {.segment = static_cast<SegmentId>(1 + number), .ordinal = last}});
    }
  }
  REQUIRE_OK((*index)->Put(entries, 1));
  MarkOptions options{.spill_directory = kSpill, .pace = {}};
  if (GENERATE(true, false)) options.minimum_free_bytes = UINT64_MAX;
  const auto counts = CountLive(env, *metadata.Snapshot(), metadata.nodes, **index, options);
  REQUIRE_OK(counts);
  CHECK(counts->live == 3);
  CHECK(counts->dead_entries == 3);
  CHECK(counts->live_chunks.at(1) == 3);
}

TEST_CASE("recipe nodes are counted like chunks") {
  Store store(IndexEngine::kSilt);
  std::vector<IndexEntry> entries;
  for (const auto& [name, bytes] : store.metadata.nodes.nodes) {
    entries.push_back({name, {.segment = 5000, .ordinal = static_cast<uint32_t>(entries.size())}});
  }
  REQUIRE_OK(store.index->Put(entries, 2));
  const auto counts = store.Count({.spill_directory = kSpill, .pace = {}});
  REQUIRE_OK(counts);
  store.expected[5000] = static_cast<uint32_t>(entries.size());
  CHECK(std::map<SegmentId, uint32_t>(counts->live_chunks.begin(), counts->live_chunks.end()) ==
        store.expected);
}

TEST_CASE("on a full disk live chunks are counted in several passes, and nothing is written") {
  Store store(GENERATE(IndexEngine::kMap, IndexEngine::kSilt));
  const size_t memory = GENERATE(0U, 4096U, 20'000U);
  const bool no_minimum = GENERATE(true, false);
  MarkOptions options{.spill_directory = kSpill, .memory_bytes = memory, .pace = {}};
  if (no_minimum) {
    options.minimum_free_bytes = 0;
    auto space = store.env.GetDiskSpace("/");
    REQUIRE_OK(space);
    const uint64_t pages_free = GENERATE(0U, 1U, 10U);
    store.env.SetCapacity(space->total_bytes - space->free_bytes + pages_free * 4096);
  } else {
    options.minimum_free_bytes = UINT64_MAX;
  }
  const auto counts = store.Count(options);
  REQUIRE_OK(counts);
  store.RequireCounts(*counts);
  CHECK(counts->spilled_bytes == 0);
  CHECK(counts->passes > 9000 * sizeof(uint64_t) / std::max<size_t>(memory, 4096));
  CHECK(counts->passes < 600);
  CHECK(store.SpillIsGone());
}

TEST_CASE("a disk that fills with the last run, or while runs are merged, counts as full") {
  const size_t memory = GENERATE(4096U, 20'000U);
  Store store(IndexEngine::kMap);
  const MarkOptions options{
      .spill_directory = kSpill, .memory_bytes = memory, .pace = {}, .minimum_free_bytes = 0};
  const auto space = store.env.GetDiskSpace("/");
  REQUIRE_OK(space);
  const uint64_t used = space->total_bytes - space->free_bytes;
  bool spilled = false;
  uint64_t last_passes = 0;
  for (uint64_t pages_free = 10; !spilled; ++pages_free) {
    REQUIRE(pages_free < 100);
    store.env.SetCapacity(used + pages_free * 4096);
    const auto counts = store.Count(options);
    REQUIRE_OK(counts);
    store.RequireCounts(*counts);
    spilled = counts->spilled_bytes > 0;
    if (!spilled) last_passes = counts->passes;
  }
  CHECK(last_passes > 1);  // the disk had a page less then
}

TEST_CASE("kNoSpace of the pace ends the count, unlike the sorter's") {
  Store store(IndexEngine::kMap);
  bool met = false;
  const MarkPace pace = [&] {
    if (std::exchange(met, true)) return Status::Ok();
    return Status(StatusCode::kNoSpace, "from the pace");
  };
  REQUIRE_CODE(store.Count({.spill_directory = kSpill, .memory_bytes = 4096, .pace = pace}),
               kNoSpace);
}

TEST_CASE("a spilled run with damage ends the count") {
  Store store(IndexEngine::kMap);
  bool flipped = false;
  const MarkPace pace = [&] {
    const auto listed = store.env.ListDirectory(kSpill);
    if (!listed.ok() || flipped) return Status::Ok();
    auto file =
        store.env.OpenFile(JoinPath(kSpill, listed->front().name), {.mode = OpenMode::kReadWrite});
    REQUIRE_OK(file);
    const uint8_t byte = 0;
    REQUIRE_OK((*file)->Write(20, {&byte, 1}));
    REQUIRE_OK((*file)->Write(21, {&byte, 1}));
    flipped = true;
    return Status::Ok();
  };
  REQUIRE_CODE(store.Count({.spill_directory = kSpill, .memory_bytes = 20'000, .pace = pace}),
               kCorruption);
  CHECK(flipped);
  CHECK(store.SpillIsGone());
}

TEST_CASE("a store with nothing in it has nothing live") {
  SimEnv env;
  REQUIRE_OK(env.CreateDirectory("/index"));
  auto index = OpenIndex(env, {.engine = IndexEngine::kMap, .directory = "/index"});
  REQUIRE_OK(index);
  Metadata metadata;
  const auto counts = CountLive(env, *metadata.Snapshot(), metadata.nodes, **index,
                                {.spill_directory = kSpill, .pace = {}});
  REQUIRE_OK(counts);
  CHECK(counts->live == 0);
  CHECK(counts->dead_entries == 0);
  CHECK(counts->live_chunks.empty());
}

TEST_CASE("chunks of segments that are referred to are distinguished from dead ones") {
  Store store(IndexEngine::kMap);
  SegmentMark mark;
  Random random(3);
  // By segment, which of its chunks should be live. The segments are added in no order.
  std::map<SegmentId, std::vector<bool>> expected;
  for (const SegmentId segment : {90U, 8U, 1U, 31U}) {
    std::vector<ChunkName> names;
    for (uint64_t i = 0; i < Store::kSegmentChunks; ++i) {
      const uint64_t number = (segment - 1) * Store::kSegmentChunks + i;
      names.push_back(NumberedName(number));
      expected[segment].push_back(!Store::IsDead(number));
      // Some chunks are there twice, in different segments or in one.
      if (!random.OneIn(5)) continue;
      const uint64_t other = random.Below(2 * Store::kSegmentChunks) * 45;  // often the same
      names.push_back(NumberedName(other));
      expected[segment].push_back(!Store::IsDead(other));
    }
    mark.Add(segment, FooterOf(names));
  }
  for (const auto& [segment, live] : expected) {
    REQUIRE(mark.LiveCount(segment) == live.size());  // nothing is known yet
  }
  REQUIRE_OK(mark.Mark(*store.metadata.Snapshot(), store.metadata.nodes, {}));
  for (const auto& [segment, live] : expected) {
    INFO("segment " << segment);
    for (uint32_t i = 0; i < live.size(); ++i) REQUIRE(mark.IsLive(segment, i) == live[i]);
    CHECK(mark.LiveCount(segment) ==
          static_cast<uint32_t>(std::count(live.begin(), live.end(), true)));
  }
  CHECK(mark.LiveCount(8) ==
        expected[8].size() - std::count(expected[8].begin(), expected[8].end(), false));
  CHECK(mark.IsLive(90, 100'000));
  CHECK(mark.IsLive(91, 0));
  CHECK(mark.LiveCount(91) == UINT32_MAX);
}

TEST_CASE("a chunk with a lost name is live, one with leading zeros in its name need not be") {
  Metadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  SegmentMark mark;
  const std::vector<FooterChunk> chunks = {{}, {.name_prefix = 0, .tag = 1}, {.name_prefix = 5}};
  mark.Add(1, chunks);
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  CHECK(mark.IsLive(1, 0));
  CHECK_FALSE(mark.IsLive(1, 1));
  CHECK_FALSE(mark.IsLive(1, 2));
  CHECK(mark.LiveCount(1) == 1);
}

TEST_CASE("a mark goes by its own snapshot, and can be made again from another") {
  Metadata metadata;
  const auto before = metadata.Snapshot();
  metadata.AddFile(NumberedChunks(0, 10));
  const auto after = metadata.Snapshot();
  SegmentMark mark;
  mark.Add(1, FooterOf({NumberedName(3)}));
  REQUIRE_OK(mark.Mark(*before, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 0);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 1);
  REQUIRE_OK(mark.Mark(*before, metadata.nodes, {}));
  CHECK(mark.LiveCount(1) == 0);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  mark.Add(2, FooterOf({NumberedName(4), NumberedName(40)}));
  CHECK(mark.LiveCount(2) == 2);
  REQUIRE_OK(mark.Mark(*after, metadata.nodes, {}));
  CHECK(mark.LiveCount(2) == 1);
}

TEST_CASE("chunks are distinguished if all names begin alike") {
  const uint8_t first = GENERATE(as<uint8_t>{}, 0x00, 0x80, 0xff);
  Metadata metadata;
  Entries live;
  std::vector<ChunkName> names;
  for (uint64_t i = 0; i < 300; ++i) {
    names.push_back(NumberedName(i));
    std::fill_n(names.back().bytes.begin(), 4, first);
    if (i % 3 != 0) live.push_back(RecipeEntry::Chunk(names.back(), 8192));
  }
  metadata.AddFile(live);
  SegmentMark mark;
  mark.Add(1, FooterOf(names));
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  for (uint32_t i = 0; i < 300; ++i) REQUIRE(mark.IsLive(1, i) == (i % 3 != 0));
}

TEST_CASE("a mark of no segments, or of empty ones, succeeds") {
  Metadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  SegmentMark mark;
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  mark.Add(3, {});
  REQUIRE_OK(mark.Mark(*metadata.Snapshot(), metadata.nodes, {}));
  CHECK(mark.LiveCount(3) == 0);
}

}  // namespace siltfs::testing
