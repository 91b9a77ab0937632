// Building recipes: the tree follows the format for any entries.
#include "fs/recipe/recipe_builder.h"

#include <algorithm>

#include "fs/recipe/recipe_reader.h"
#include "tests/fs/recipe/recipe_test_support.h"

namespace siltfs::testing {
namespace {

TEST_CASE("a recipe of no entries is empty") {
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, {});
  CHECK(recipe == Recipe{});
  CHECK(recipe.size() == 0);
  CHECK(nodes.puts == 0);
}

TEST_CASE("at most 32 entries are stored in the inode") {
  Random random(1);
  const Entries entries = RandomEntries(random, 33, {Names::kAlwaysEnd, 0});
  MemoryNodeStore nodes;
  const Recipe inlined = Build(nodes, Entries(entries.begin(), entries.end() - 1));
  CHECK(inlined.height == 0);
  CHECK(inlined.entries.size() == 32);
  CHECK(nodes.puts == 0);
  const Recipe outlined = Build(nodes, entries);
  CHECK(outlined.height == 1);
  CHECK(outlined.children.size() == 1);
  CHECK(nodes.puts == 1);
}

TEST_CASE("at most 24 children are stored in the inode") {
  Random random(2);
  const Entries entries = RandomEntries(random, 24 * 64 + 1, {Names::kAlwaysEnd, 0});
  MemoryNodeStore nodes;
  const Recipe inlined = Build(nodes, Entries(entries.begin(), entries.end() - 1));
  CHECK(inlined.height == 1);
  CHECK(inlined.children.size() == 24);
  const Recipe outlined = Build(nodes, entries);
  CHECK(outlined.height == 2);
  CHECK(outlined.children.size() == 1);
}

TEST_CASE("adjacent holes become one") {
  MemoryNodeStore nodes;
  const RecipeEntry chunk = RecipeEntry::Chunk(NameFrom(1), 10);
  const Recipe recipe =
      Build(nodes, {RecipeEntry::Hole(1), RecipeEntry::Hole(2), chunk, RecipeEntry::Hole(3),
                    RecipeEntry::Hole(4), RecipeEntry::Hole(5)});
  CHECK(recipe.entries == Entries{RecipeEntry::Hole(3), chunk, RecipeEntry::Hole(12)});
}

TEST_CASE("a hole that continues after EndHole still becomes one within a node") {
  MemoryNodeStore nodes;
  RecipeBuilder builder(nodes);
  REQUIRE_OK(builder.Append(RecipeEntry::Hole(1)));
  REQUIRE_OK(builder.EndHole());
  REQUIRE_OK(builder.Append(RecipeEntry::Hole(2)));
  CHECK(builder.size() == 3);
  const Result<Recipe> recipe = builder.Finish();
  REQUIRE_OK(recipe);
  CHECK(recipe->entries == Entries{RecipeEntry::Hole(3)});
  CHECK(recipe->size() == 3);
}

TEST_CASE("the list of entries alone determines the tree") {
  const size_t count = GENERATE(0, 1, 32, 33, 63, 64, 65, 511, 512, 513, 1535, 1537, 5000, 50000);
  const Names names = GENERATE(Names::kRandom, Names::kFew, Names::kAlwaysEnd, Names::kNeverEnd);
  const unsigned holes = GENERATE(0u, 2u, 8u, 15u);
  Random random(count * 64 + static_cast<unsigned>(names) * 16 + holes);
  const Entries entries = RandomEntries(random, count, {names, holes});
  MemoryNodeStore nodes, model_nodes;
  const Recipe recipe = Build(nodes, entries);
  CHECK(recipe == ModelBuild(model_nodes, entries));
  CHECK(nodes.nodes.size() == model_nodes.nodes.size());
  CHECK(recipe.size() == BytesOf(entries));
  CHECK(ReadAll(nodes, recipe) == Merged(entries));
  const Result<Recipe> decoded = Recipe::Decode(recipe.Encode());
  REQUIRE_OK(decoded);
  CHECK(*decoded == recipe);
}

struct NodeCounts {
  size_t fewest = ~size_t{0};
  size_t most = 0;
  size_t nodes = 0;
};

// For each level: the number of nodes, the most items of a node, and the fewest items of a node
// other than the last one.
std::vector<NodeCounts> CountsByLevel(MemoryNodeStore& nodes, const Recipe& recipe) {
  std::vector<NodeCounts> counts(recipe.height);
  RecipeVisitor visitor;
  visitor.node = [&](const RecipeChild& child, uint8_t level, uint64_t offset) {
    const Result<RecipeNode> node = ReadNode(nodes, child, level);
    REQUIRE_OK(node);
    NodeCounts& of_level = counts[level];
    ++of_level.nodes;
    of_level.most = std::max(of_level.most, node->count());
    if (offset + child.covered_bytes < recipe.size())
      of_level.fewest = std::min(of_level.fewest, node->count());
    return true;
  };
  REQUIRE_OK(WalkRecipe(nodes, recipe, visitor));
  return counts;
}

TEST_CASE("nodes keep their minimum and maximum size if every name ends a node, or none does") {
  Random random(3);
  MemoryNodeStore nodes;
  SECTION("every") {
    nodes.last_byte = 0;
    const Recipe recipe = Build(nodes, RandomEntries(random, 300000, {Names::kAlwaysEnd, 0}));
    const std::vector<NodeCounts> counts = CountsByLevel(nodes, recipe);
    REQUIRE(counts.size() == 3);
    CHECK((counts[0].fewest == 64 && counts[0].most == 64));
    CHECK((counts[1].fewest == 32 && counts[1].most == 32));
  }
  SECTION("none") {
    nodes.last_byte = 0xff;
    const Recipe recipe = Build(nodes, RandomEntries(random, 300000, {Names::kNeverEnd, 0}));
    const std::vector<NodeCounts> counts = CountsByLevel(nodes, recipe);
    REQUIRE(counts.size() == 2);
    CHECK((counts[0].fewest == 512 && counts[0].most == 512));
    CHECK((counts[1].fewest == 256 && counts[1].most == 256));
  }
}

TEST_CASE("nodes of random names hold about 128 entries or 64 children") {
  Random random(4);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, RandomEntries(random, 400000, {Names::kRandom, 0}));
  const std::vector<NodeCounts> counts = CountsByLevel(nodes, recipe);
  REQUIRE(counts.size() >= 2);
  CHECK(counts[0].nodes > 400000 / 140);
  CHECK(counts[0].nodes < 400000 / 116);
  CHECK(counts[1].nodes > counts[0].nodes / 85);
  CHECK(counts[1].nodes < counts[0].nodes / 48);
}

TEST_CASE("equal runs of entries share their nodes at any offset") {
  Random random(5);
  const Entries run = RandomEntries(random, 20000, {});
  const Entries before = RandomEntries(random, 777, {});
  const Entries after = RandomEntries(random, 333, {});
  MemoryNodeStore nodes;
  Build(nodes, run);
  const size_t alone = nodes.nodes.size();
  Entries all = before;
  all.insert(all.end(), run.begin(), run.end());
  all.insert(all.end(), after.begin(), after.end());
  Build(nodes, all);
  CHECK(nodes.nodes.size() < alone + 30);
}

TEST_CASE("invalid entries are refused") {
  MemoryNodeStore nodes;
  RecipeBuilder builder(nodes);
  REQUIRE_CODE(builder.Append(RecipeEntry::Chunk(NameFrom(1), 0)), kInvalidArgument);
  REQUIRE_CODE(builder.Append(RecipeEntry::Chunk(NameFrom(1), 1 << 24)), kInvalidArgument);
  REQUIRE_CODE(builder.Append(RecipeEntry::Hole(0)), kInvalidArgument);
  REQUIRE_CODE(builder.Append(RecipeEntry{RecipeEntry::kHole, NameFrom(1), 5}), kInvalidArgument);
  REQUIRE_OK(builder.Append(RecipeEntry::Chunk(NameFrom(1), (1 << 24) - 1)));
}

TEST_CASE("a recipe grows to the largest file and not a byte beyond") {
  MemoryNodeStore nodes;
  RecipeBuilder builder(nodes);
  REQUIRE_OK(builder.Append(RecipeEntry::Hole(kMaxRecipeBytes - 1)));
  REQUIRE_CODE(builder.Append(RecipeEntry::Hole(2)), kFileTooLarge);
  REQUIRE_CODE(builder.Append(RecipeEntry::Chunk(NameFrom(1), 2)), kFileTooLarge);
  REQUIRE_OK(builder.Append(RecipeEntry::Chunk(NameFrom(1), 1)));
  REQUIRE_CODE(builder.Append(RecipeEntry::Hole(1)), kFileTooLarge);
  const Result<Recipe> recipe = builder.Finish();
  REQUIRE_OK(recipe);
  CHECK(recipe->size() == kMaxRecipeBytes);
}

TEST_CASE("a node that cannot be stored fails the build with its cause") {
  Random random(6);
  const Entries entries = RandomEntries(random, 5000, {});
  MemoryNodeStore counting;
  Build(counting, entries);
  for (size_t failing = 0; failing < counting.puts; ++failing) {
    MemoryNodeStore nodes;
    nodes.failing_put = failing;
    RecipeBuilder builder(nodes);
    Status outcome;
    for (size_t i = 0; i < entries.size() && outcome.ok(); ++i)
      outcome = builder.Append(entries[i]);
    if (outcome.ok()) outcome = builder.Finish().status();
    REQUIRE_CODE(outcome, kNoSpace);
  }
}

TEST_CASE("a subtree is reused only where a new node of its level begins") {
  MemoryNodeStore nodes;
  Random random(7);
  const Recipe old = Build(nodes, RandomEntries(random, 1000, {Names::kRandom, 0}));
  REQUIRE(old.height == 1);
  REQUIRE(old.children.size() > 2);
  RecipeBuilder builder(nodes);
  CHECK_FALSE(builder.MayReuse(0, false));
  CHECK_FALSE(builder.MayReuse(9, false));
  CHECK(builder.MayReuse(1, false));
  CHECK_FALSE(builder.MayReuse(1, true));  // a tree of only this node might fit into the inode
  REQUIRE_OK(builder.AppendSubtree(1, old.children[0], false));
  CHECK(builder.MayReuse(1, true));
  CHECK_FALSE(builder.MayReuse(2, false));
  REQUIRE_OK(builder.Append(RecipeEntry::Hole(5)));
  CHECK_FALSE(builder.MayReuse(1, false));
  REQUIRE_CODE(builder.AppendSubtree(1, old.children[1], false), kInvalidArgument);
  REQUIRE_OK(builder.Append(RecipeEntry::Chunk(NameFrom(1), 5)));
  CHECK_FALSE(builder.MayReuse(1, false));
}

}  // namespace
}  // namespace siltfs::testing
