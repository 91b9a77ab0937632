// The walk over metadata and recipes visits all references, and each shared node once.
#include <memory>
#include <set>
#include <vector>

#include "fs/mark/mark.h"
#include "fs/recipe/recipe_builder.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "store/base/random.h"
#include "tests/fs/mark/mark_fixture.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

std::set<ChunkName> Visited(MarkMetadata& metadata) {
  std::set<ChunkName> names;
  REQUIRE_OK(ForEachReference(*metadata.Snapshot(), metadata.nodes, {}, [&](const ChunkName& name) {
    names.insert(name);
    return Status::Ok();
  }));
  return names;
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

}  // namespace

TEST_CASE("all names of files, trees, overlays and open files without a name are visited") {
  const uint64_t seed = GENERATE(range(1, 6));
  Random random(seed);
  MarkMetadata metadata;
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
  MarkMetadata metadata;
  const Entries entries = NumberedChunks(0, 10);
  InodeRecord record = FileOf(Build(metadata.nodes, entries));
  record.recipe_limit = record.size = 8192;
  metadata.Set(InodeKey(2), record.Encode());
  CHECK(Visited(metadata).size() == 10);
}

TEST_CASE("nodes that recipes share are walked once") {
  MarkMetadata metadata;
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
  MarkMetadata metadata;
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

TEST_CASE("a tree that refers to one chunk half a billion times is walked in a few reads") {
  MarkMetadata metadata;
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
  MarkMetadata metadata;
  const ChunkName name = NumberedName(1);
  const RecipeChild leaf = Plant(metadata.nodes, NumberedName(2), LeafOf(NumberedChunks(5, 1)));
  const RecipeChild self = Plant(metadata.nodes, name, InnerOf(1, {leaf}));
  const RecipeChild around = Plant(metadata.nodes, name, InnerOf(1, {self}));
  metadata.AddFile(RootOf(2, {around}));
  CHECK((Visited(metadata) == std::set<ChunkName>{name}));
  CHECK(metadata.nodes.gets == 1);
}

TEST_CASE("damage is reported with the inode that it is in") {
  MarkMetadata metadata;
  metadata.AddFile(NumberedChunks(0, 10));
  metadata.Set(InodeKey(77), "nonsense");
  CHECK(metadata.Walk().path() == "inode 77");
}

}  // namespace siltfs::testing
