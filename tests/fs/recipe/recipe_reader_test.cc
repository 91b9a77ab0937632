// Reading recipes: seeking, walking, and damage.
#include "fs/recipe/recipe_reader.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/fs/recipe/recipe_test_support.h"

namespace siltfs::testing {
namespace {

// Checks the result of Seek(offset).
void CheckSeek(RecipeReader& reader, const Entries& entries, const std::vector<uint64_t>& begins,
               uint64_t offset) {
  reader.Seek(offset);
  REQUIRE_OK(reader.status());
  const uint64_t size = begins.back();
  if (offset >= size) {
    REQUIRE_FALSE(reader.Valid());
    return;
  }
  const size_t index =
      static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), offset) - begins.begin()) -
      1;
  const bool right =
      reader.Valid() && reader.entry_offset() == begins[index] && reader.entry() == entries[index];
  if (!right) FAIL("offset " << offset);
}

std::vector<uint64_t> BeginsOf(const Entries& entries) {
  std::vector<uint64_t> begins{0};
  for (const RecipeEntry& entry : entries) begins.push_back(begins.back() + entry.length);
  return begins;
}

TEST_CASE("seeking finds the entry that holds the byte") {
  const size_t count = GENERATE(0, 1, 20, 40, 1000, 30000);
  Random random(count);
  const Entries entries = Merged(RandomEntries(random, count, {Names::kRandom, 4}));
  const std::vector<uint64_t> begins = BeginsOf(entries);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, entries);
  RecipeReader reader(nodes, recipe);
  CHECK_FALSE(reader.Valid());
  const size_t step = std::max<size_t>(1, entries.size() / 700);
  for (size_t i = 0; i < begins.size();
       i += step) {  // forwards: first, inner and last byte of entries
    CheckSeek(reader, entries, begins, begins[i]);
    if (i == entries.size()) continue;
    CheckSeek(reader, entries, begins, begins[i] + random.Below(entries[i].length));
    CheckSeek(reader, entries, begins, begins[i + 1] - 1);
  }
  for (uint64_t beyond : {uint64_t{0}, uint64_t{1}, kMaxRecipeBytes}) {
    CheckSeek(reader, entries, begins, recipe.size() + beyond);
  }
  CheckSeek(reader, entries, begins, ~uint64_t{0});
  for (int i = 0; i < 500; ++i) CheckSeek(reader, entries, begins, random.Below(recipe.size() + 2));
}

TEST_CASE("Next continues after any Seek") {
  Random random(11);
  const Entries entries = Merged(RandomEntries(random, 30000, {}));
  const std::vector<uint64_t> begins = BeginsOf(entries);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, entries);
  RecipeReader reader(nodes, recipe);
  for (int round = 0; round < 100; ++round) {
    const size_t from = random.Below(entries.size());
    reader.Seek(begins[from]);
    for (size_t i = from; i < std::min(entries.size(), from + 400); ++i, reader.Next()) {
      const bool right =
          reader.Valid() && reader.entry() == entries[i] && reader.entry_offset() == begins[i];
      if (!right) FAIL("entry " << i << " from " << from);
    }
    if (from + 400 >= entries.size()) CHECK_FALSE(reader.Valid());
  }
}

TEST_CASE("a walk from end to end reads each node once") {
  Random random(12);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, RandomEntries(random, 50000, {}));
  const size_t tree = nodes.nodes.size();
  nodes.ResetCounts();
  ReadAll(nodes, recipe);
  CHECK(nodes.gets == tree);
}

TEST_CASE("equal nodes next to each other are read once") {
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, Entries(100 * 512, RecipeEntry::Chunk(NameFrom(1), 5)));
  nodes.ResetCounts();
  ReadAll(nodes, recipe);
  CHECK(nodes.gets <= 6);
}

TEST_CASE("seeking within a leaf reads nothing, and elsewhere at most one node per level") {
  Random random(13);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, RandomEntries(random, 50000, {}));
  REQUIRE(recipe.height == 2);
  RecipeReader reader(nodes, recipe);
  reader.Seek(recipe.size() / 2);
  nodes.ResetCounts();
  reader.Seek(recipe.size() / 2);
  CHECK(nodes.gets == 0);
  for (int i = 0; i < 100; ++i) {
    nodes.ResetCounts();
    reader.Seek(random.Below(recipe.size()));
    CHECK(nodes.gets <= 2);
  }
}

TEST_CASE("an unreadable node makes exactly its own range unreadable") {
  Random random(14);
  const Entries entries = Merged(RandomEntries(random, 30000, {}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, entries);
  REQUIRE(recipe.height == 2);
  // One leaf in the middle.
  const Result<RecipeNode> inner = ReadNode(nodes, recipe.children[1], 1);
  REQUIRE_OK(inner);
  const RecipeChild lost = inner->children[5];
  uint64_t begin = recipe.children[0].covered_bytes;
  for (size_t i = 0; i < 5; ++i) begin += inner->children[i].covered_bytes;
  const uint64_t end = begin + lost.covered_bytes;
  nodes.nodes.erase(lost.name);

  RecipeReader reader(nodes, recipe);
  Entries read;
  for (reader.Seek(0); reader.Valid(); reader.Next()) read.push_back(reader.entry());
  REQUIRE_CODE(reader.status(), kNotFound);
  CHECK(reader.failed_begin() == begin);
  CHECK(reader.failed_end() == end);
  CHECK(read == Slice(entries, 0, begin));
  read.clear();
  for (reader.Seek(reader.failed_end()); reader.Valid(); reader.Next())
    read.push_back(reader.entry());
  REQUIRE_OK(reader.status());
  CHECK(read == Slice(entries, end, recipe.size()));
  reader.Seek(begin + 1);
  REQUIRE_CODE(reader.status(), kNotFound);
  CHECK(reader.failed_begin() == begin);
  CHECK(reader.failed_end() == end);
  reader.Seek(0);
  REQUIRE_OK(reader.status());
  CHECK(reader.entry() == entries[0]);
}

TEST_CASE("flipped bytes in a tree are detected, or the entries still add up to the file's size") {
  Random random(15);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, RandomEntries(random, 4000, {}));
  REQUIRE(recipe.height >= 1);
  for (int round = 0; round < 1000; ++round) {
    MemoryNodeStore damaged;
    damaged.nodes = nodes.nodes;
    auto victim = std::next(damaged.nodes.begin(),
                            static_cast<ptrdiff_t>(random.Below(damaged.nodes.size())));
    Bytes bytes = *victim->second;
    bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
    victim->second = std::make_shared<const Bytes>(bytes);
    uint64_t at = 0;
    RecipeReader reader(damaged, recipe);
    for (reader.Seek(0); reader.Valid(); reader.Next()) at += reader.entry().length;
    if (reader.status().ok()) {
      REQUIRE(at == recipe.size());
    } else if (!reader.status().Is(StatusCode::kNotFound)) {  // a flipped name in an inner node
      REQUIRE_CODE(reader.status(), kCorruption);
      REQUIRE(reader.status().ToString().find(victim->first.ToHex()) != std::string::npos);
    }
  }
}

TEST_CASE("a walk over a tree that contains itself ends") {
  // Levels only decrease: a reference to a node of the wrong level is refused.
  MemoryNodeStore nodes;
  nodes.last_byte = 0;
  const RecipeChild self{NameFrom(1), 32 + 48, 10, 1, 0};
  const Bytes bytes = EncodeNode(1, {self}, RecipeTotals::Of(self));
  nodes.nodes[self.name] = std::make_shared<const Bytes>(bytes);
  const Recipe recipe{2, {}, {self}};
  RecipeReader reader(nodes, recipe);
  reader.Seek(0);
  REQUIRE_CODE(reader.status(), kCorruption);
}

struct Visited {
  std::multiset<ChunkName> nodes;
  Entries entries;
  std::vector<uint64_t> offsets;
};

TEST_CASE("a walk visits every node and entry once, parents first") {
  Random random(16);
  const Entries entries = Merged(RandomEntries(random, 30000, {}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, entries);
  Visited visited;
  uint8_t height = recipe.height;
  bool levels_right = true;
  RecipeVisitor visitor;
  visitor.node = [&](const RecipeChild& node, uint8_t level, uint64_t) {
    visited.nodes.insert(node.name);
    levels_right = levels_right && level < height;
    return true;
  };
  visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
    visited.entries.push_back(entry);
    visited.offsets.push_back(offset);
    return Status::Ok();
  };
  REQUIRE_OK(WalkRecipe(nodes, recipe, visitor));
  CHECK(levels_right);
  CHECK(visited.nodes.size() == nodes.nodes.size());
  CHECK(visited.entries == entries);
  std::vector<uint64_t> begins = BeginsOf(entries);
  begins.pop_back();
  CHECK(visited.offsets == begins);
}

TEST_CASE("ForEachNode reads no leaf and skips pruned subtrees") {
  Random random(17);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, RandomEntries(random, 30000, {}));
  REQUIRE(recipe.height == 2);
  size_t leaves = 0, inner = 0;
  nodes.ResetCounts();
  REQUIRE_OK(ForEachNode(nodes, recipe, [&](const RecipeChild&, uint8_t level) {
    ++(level == 0 ? leaves : inner);
    return true;
  }));
  CHECK(inner == recipe.children.size());
  CHECK(leaves + inner == nodes.nodes.size());
  CHECK(nodes.gets == inner);

  nodes.ResetCounts();
  leaves = inner = 0;
  REQUIRE_OK(ForEachNode(nodes, recipe, [&](const RecipeChild&, uint8_t level) {
    ++(level == 0 ? leaves : inner);
    return inner > 1;
  }));
  CHECK(inner == recipe.children.size());
  CHECK(nodes.gets == inner - 1);
}

TEST_CASE("a visitor that prunes walks shared nodes of two recipes once") {
  Random random(18);
  const Entries entries = Merged(RandomEntries(random, 50000, {}));
  MemoryNodeStore nodes;
  const Recipe first = Build(nodes, entries);
  Entries changed = entries;
  changed[25000] = RecipeEntry::Chunk(NameFrom(9), 100);
  const Recipe second = Build(nodes, Merged(changed));
  std::set<ChunkName> seen;
  const auto visit = [&seen](const RecipeChild& node, uint8_t) {
    return seen.insert(node.name).second;
  };
  REQUIRE_OK(ForEachNode(nodes, first, visit));
  nodes.ResetCounts();
  REQUIRE_OK(ForEachNode(nodes, second, visit));
  CHECK(nodes.gets <= 3);
  CHECK(seen.size() == nodes.nodes.size());
}

TEST_CASE("ForEachChunk skips holes, and ends with the visitor's failure") {
  const RecipeEntry first = RecipeEntry::Chunk(NameFrom(1), 10);
  const RecipeEntry second = RecipeEntry::Chunk(NameFrom(2), 20);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, {first, RecipeEntry::Hole(1000), second, first});
  std::vector<std::pair<ChunkName, uint64_t>> chunks;
  REQUIRE_OK(ForEachChunk(nodes, recipe, [&](const ChunkName& name, uint64_t, uint64_t offset) {
    chunks.emplace_back(name, offset);
    return Status::Ok();
  }));
  CHECK(chunks == std::vector<std::pair<ChunkName, uint64_t>>{
                      {first.name, 0}, {second.name, 1010}, {first.name, 1030}});
  chunks.clear();
  REQUIRE_CODE(ForEachChunk(nodes, recipe,
                            [&](const ChunkName& name, uint64_t, uint64_t offset) {
                              chunks.emplace_back(name, offset);
                              return Status(StatusCode::kInterrupted, "enough");
                            }),
               kInterrupted);
  CHECK(chunks.size() == 1);
}

TEST_CASE("a walk continues after damage if the visitor returns OK") {
  Random random(19);
  const Entries entries = Merged(RandomEntries(random, 3000, {}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, entries);
  REQUIRE(recipe.height == 1);
  const RecipeChild lost = recipe.children[2];
  const uint64_t begin = recipe.children[0].covered_bytes + recipe.children[1].covered_bytes;
  nodes.nodes.erase(lost.name);
  Entries read;
  RecipeVisitor visitor;
  visitor.entry = [&](const RecipeEntry& entry, uint64_t) {
    read.push_back(entry);
    return Status::Ok();
  };
  REQUIRE_CODE(WalkRecipe(nodes, recipe, visitor), kNotFound);
  CHECK(read == Slice(entries, 0, begin));
  read.clear();
  size_t damaged = 0;
  visitor.damaged = [&](const RecipeChild& node, uint8_t level, uint64_t offset, Status why) {
    ++damaged;
    CHECK((node == lost && level == 0 && offset == begin && why.Is(StatusCode::kNotFound)));
    return Status::Ok();
  };
  REQUIRE_OK(WalkRecipe(nodes, recipe, visitor));
  CHECK(damaged == 1);
  Entries expected = Slice(entries, 0, begin);
  for (const RecipeEntry& entry : Slice(entries, begin + lost.covered_bytes, recipe.size()))
    expected.push_back(entry);
  CHECK(read == expected);
}

}  // namespace
}  // namespace siltfs::testing
