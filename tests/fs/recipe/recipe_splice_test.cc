// Splicing recipes: the result equals a build from scratch, with few reads and writes.
#include "fs/recipe/recipe_splice.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "fs/recipe/recipe_reader.h"
#include "tests/fs/recipe/recipe_test_support.h"

namespace siltfs::testing {
namespace {

// The offsets at which a splice may begin or end: entries' boundaries, and any offset in holes.
class Boundaries {
 public:
  explicit Boundaries(const Entries& entries) : entries_(entries), begins_{0} {
    for (const RecipeEntry& entry : entries) begins_.push_back(begins_.back() + entry.length);
  }
  uint64_t size() const { return begins_.back(); }
  uint64_t At(Random& random, size_t index) const {
    if (index >= entries_.size()) return size();
    if (!entries_[index].is_hole() || random.OneIn(2)) return begins_[index];
    return begins_[index] + random.Below(entries_[index].length);
  }
  size_t count() const { return entries_.size(); }

 private:
  const Entries& entries_;
  std::vector<uint64_t> begins_;
};

Entries NewEntries(Random& random, const Entries& old, EntryStyle style) {
  const uint64_t choice = random.Below(8);
  if (choice == 0) return {};
  if (choice == 1) return {RecipeEntry::Hole(1 + random.Below(100000))};
  if (choice == 2 && !old.empty()) {  // content that the file has already
    const size_t from = random.Below(old.size());
    const size_t count =
        std::min<size_t>(old.size() - from, 1 + random.Below(random.OneIn(4) ? 3000 : 20));
    const auto begin = old.begin() + static_cast<ptrdiff_t>(from);
    return Entries(begin, begin + static_cast<ptrdiff_t>(count));
  }
  return RandomEntries(random, 1 + random.Below(random.OneIn(8) ? 3000 : 10), style);
}

std::vector<Splice> RandomSplices(Random& random, const Entries& old, EntryStyle style) {
  const Boundaries boundaries(old);
  std::vector<uint64_t> places;
  const size_t count = random.OneIn(4) ? 1 + random.Below(40) : 1 + random.Below(3);
  for (size_t i = 0; i < count; ++i) {
    const size_t index = random.Below(boundaries.count() + 1);
    const size_t removed = random.OneIn(3) ? 0 : random.Below(random.OneIn(6) ? 2000 : 8);
    places.push_back(boundaries.At(random, index));
    places.push_back(removed == 0 ? places.back() : boundaries.At(random, index + removed));
  }
  if (random.OneIn(4)) places.insert(places.end(), 2, boundaries.size());  // an append
  if (random.OneIn(6)) {                                                   // a truncation
    places.push_back(boundaries.At(random, random.Below(boundaries.count() + 1)));
    places.push_back(boundaries.size());
  }
  if (random.OneIn(6)) places.insert(places.end(), 2, 0);
  std::sort(places.begin(), places.end());
  std::vector<Splice> splices;
  for (size_t i = 0; i < places.size(); i += 2) {
    splices.push_back({places[i], places[i + 1], NewEntries(random, old, style)});
  }
  return splices;
}

Recipe Spliced(NodeStore& nodes, const Recipe& old, const std::vector<Splice>& splices) {
  const Result<Recipe> recipe = SpliceRecipe(nodes, old, splices);
  REQUIRE_OK(recipe);
  return *recipe;
}

TEST_CASE("any splices give the same recipe as a build from scratch") {
  const size_t count = GENERATE(0, 1, 20, 40, 200, 2000, 10000, 50000);
  const Names names = GENERATE(Names::kRandom, Names::kFew, Names::kAlwaysEnd, Names::kNeverEnd);
  const unsigned holes = GENERATE(0u, 2u, 8u);
  const EntryStyle style{names, holes};
  const uint64_t seed = count * 64 + static_cast<unsigned>(names) * 16 + holes;
  Random random(seed);
  const int chains = count >= 10000 ? 1 : 3;
  for (int chain = 0; chain < chains; ++chain) {
    Entries model = Merged(RandomEntries(random, count, style));
    MemoryNodeStore nodes;
    Recipe recipe = Build(nodes, model);
    for (int round = 0; round < 5; ++round) {
      INFO("seed " << seed << ", chain " << chain << ", round " << round);
      const std::vector<Splice> splices = RandomSplices(random, model, style);
      const Entries after = ModelSplice(model, splices);
      recipe = Spliced(nodes, recipe, splices);
      MemoryNodeStore scratch;
      REQUIRE(recipe == Build(scratch, after));
      REQUIRE(ReadAll(nodes, recipe) == after);
      model = after;
    }
  }
}

TEST_CASE("a splice is canonical if all inner nodes end at their minimum, or at their maximum") {
  const uint8_t last_byte = GENERATE(uint8_t{0x00}, uint8_t{0xff});
  const EntryStyle style{Names::kAlwaysEnd, 1};
  Random random(last_byte + 1);
  Entries model = Merged(RandomEntries(random, 60000, style));
  MemoryNodeStore nodes;
  nodes.last_byte = last_byte;
  Recipe recipe = Build(nodes, model);
  for (int round = 0; round < 12; ++round) {
    const std::vector<Splice> splices = RandomSplices(random, model, style);
    model = ModelSplice(model, splices);
    recipe = Spliced(nodes, recipe, splices);
    MemoryNodeStore scratch;
    scratch.last_byte = last_byte;
    REQUIRE(recipe == Build(scratch, model));
  }
}

TEST_CASE("a splice at every boundary of nodes, with holes on both sides, is canonical") {
  Random random(21);
  // Half of the entries are holes, and no name ends a node: nodes end at their maximum, after
  // holes.
  const Entries model = [&] {
    Entries entries;
    for (int i = 0; i < 1500; ++i) {
      entries.push_back(RecipeEntry::Chunk(RandomName(random, Names::kNeverEnd), 100));
      entries.push_back(RecipeEntry::Hole(50));
    }
    return entries;
  }();
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, model);
  REQUIRE(recipe.children.size() > 3);
  const RecipeEntry chunk = RecipeEntry::Chunk(NameFrom(7), 30);
  const std::vector<Entries> inserted{{},
                                      {RecipeEntry::Hole(5)},
                                      {chunk},
                                      {RecipeEntry::Hole(5), chunk},
                                      {chunk, RecipeEntry::Hole(5)}};
  uint64_t at = 0;
  for (size_t i = 0; i <= recipe.children.size(); ++i) {
    for (const Entries& entries : inserted) {
      for (uint64_t removed : {uint64_t{0}, uint64_t{100}, uint64_t{150}}) {
        if (at + removed > recipe.size()) continue;
        const std::vector<Splice> splices{{at, at + removed, entries}};
        MemoryNodeStore scratch;
        REQUIRE(Spliced(nodes, recipe, splices) == Build(scratch, ModelSplice(model, splices)));
      }
    }
    if (i < recipe.children.size()) at += recipe.children[i].covered_bytes;
  }
}

TEST_CASE("a splice that cuts a tree down to what fits into the inode leaves no tree") {
  Random random(22);
  const Entries model = Merged(RandomEntries(random, 50000, {Names::kRandom, 0}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, model);
  REQUIRE(recipe.height == 2);
  for (size_t kept : {size_t{0}, size_t{1}, size_t{32}, size_t{33}, size_t{1000}, size_t{5000}}) {
    INFO(kept);
    const Entries head(model.begin(), model.begin() + static_cast<ptrdiff_t>(kept));
    const Entries tail(model.end() - static_cast<ptrdiff_t>(kept), model.end());
    MemoryNodeStore scratch;
    CHECK(Spliced(nodes, recipe, {{BytesOf(head), recipe.size(), {}}}) == Build(scratch, head));
    CHECK(Spliced(nodes, recipe, {{0, recipe.size() - BytesOf(tail), {}}}) == Build(scratch, tail));
  }
}

TEST_CASE("when only the last node of a level is left, it goes into the inode if it fits") {
  Random random(30);
  for (size_t count : {80u, 90u, 150u, 300u, 700u, 4000u, 5000u, 6000u, 7000u, 8000u, 9000u}) {
    INFO(count);
    const Entries model = RandomEntries(random, count, {Names::kAlwaysEnd, 0});
    MemoryNodeStore nodes;
    nodes.last_byte = 0;
    const Recipe recipe = Build(nodes, model);
    REQUIRE(recipe.children.size() > 1);
    const std::vector<Splice> splices{
        {0, recipe.size() - recipe.children.back().covered_bytes, {}}};
    CHECK(Spliced(nodes, recipe, splices) == Build(nodes, ModelSplice(model, splices)));
  }
}

TEST_CASE("no splices, or splices of equal content, give the old recipe") {
  Random random(23);
  const Entries model = Merged(RandomEntries(random, 20000, {}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, model);
  CHECK(Spliced(nodes, recipe, {}) == recipe);
  CHECK(Spliced(nodes, recipe, {{0, 0, {}}}) == recipe);
  CHECK(Spliced(nodes, recipe, {{recipe.size(), recipe.size(), {}}}) == recipe);
  CHECK(Spliced(nodes, recipe, {{0, recipe.size(), model}}) == recipe);
}

TEST_CASE("truncating and extending by splices") {
  MemoryNodeStore nodes;
  const RecipeEntry chunk = RecipeEntry::Chunk(NameFrom(1), 100);
  const Recipe recipe = Build(nodes, {chunk, RecipeEntry::Hole(50)});
  CHECK(Spliced(nodes, recipe, {{150, 150, {RecipeEntry::Hole(25)}}}).entries ==
        Entries{chunk, RecipeEntry::Hole(75)});
  CHECK(Spliced(nodes, recipe, {{120, 150, {}}}).entries == Entries{chunk, RecipeEntry::Hole(20)});
  CHECK(Spliced(nodes, recipe, {{100, 150, {}}}).entries == Entries{chunk});
  CHECK(Spliced(nodes, recipe, {{0, 100, {}}}).entries == Entries{RecipeEntry::Hole(50)});
  CHECK(Spliced(nodes, recipe, {{0, 100, {RecipeEntry::Hole(100)}}}).entries ==
        Entries{RecipeEntry::Hole(150)});
  CHECK(Spliced(nodes, recipe, {{120, 130, {chunk}}}).entries ==
        Entries{chunk, RecipeEntry::Hole(20), chunk, RecipeEntry::Hole(20)});
  CHECK(Spliced(nodes, recipe, {{0, 150, {}}}) == Recipe{});
}

TEST_CASE("splices in disorder, beyond the end or inside a chunk are refused") {
  Random random(24);
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, Entries(200, RecipeEntry::Chunk(NameFrom(1), 100)));
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{200, 300, {}}, {100, 200, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{100, 300, {}}, {200, 400, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{300, 200, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{0, 20100, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{20100, 20100, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{150, 200, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{100, 250, {}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{100, 200, {RecipeEntry::Hole(0)}}}), kInvalidArgument);
  REQUIRE_CODE(SpliceRecipe(nodes, recipe, {{100, 200, {RecipeEntry::Hole(kMaxRecipeBytes)}}}),
               kFileTooLarge);
}

TEST_CASE("a node that cannot be read or stored fails the splice with its cause") {
  Random random(25);
  const Entries model = Merged(RandomEntries(random, 20000, {}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, model);
  const Boundaries boundaries(model);
  const uint64_t at = boundaries.At(random, 9000);
  const std::vector<Splice> splices{{at, at, {RecipeEntry::Chunk(NameFrom(3), 9)}}};
  nodes.ResetCounts();
  Spliced(nodes, recipe, splices);
  const size_t gets = nodes.gets, puts = nodes.puts;
  REQUIRE(gets > 0);
  REQUIRE(puts > 0);
  for (size_t failing = 0; failing < gets; ++failing) {
    nodes.ResetCounts();
    nodes.failing_get = failing;
    REQUIRE_CODE(SpliceRecipe(nodes, recipe, splices), kIoError);
  }
  nodes.failing_get.reset();
  for (size_t failing = 0; failing < puts; ++failing) {
    nodes.ResetCounts();
    nodes.failing_put = failing;
    REQUIRE_CODE(SpliceRecipe(nodes, recipe, splices), kNoSpace);
  }
}

TEST_CASE("splicing damaged trees fails or gives a readable recipe") {
  Random random(26);
  Entries model = Merged(RandomEntries(random, 6000, {Names::kRandom, 6}));
  MemoryNodeStore nodes;
  const Recipe recipe = Build(nodes, model);
  for (int round = 0; round < 300; ++round) {
    MemoryNodeStore damaged;
    damaged.nodes = nodes.nodes;
    auto victim = std::next(damaged.nodes.begin(),
                            static_cast<ptrdiff_t>(random.Below(damaged.nodes.size())));
    Bytes bytes = *victim->second;
    bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
    victim->second = std::make_shared<const Bytes>(bytes);
    const Result<Recipe> result = SpliceRecipe(damaged, recipe, RandomSplices(random, model, {}));
    if (!result.ok()) {
      const StatusCode code = result.status().code();
      const bool expected = code == StatusCode::kCorruption ||
                            code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound;
      REQUIRE(expected);
      continue;
    }
    uint64_t at = 0;
    RecipeReader reader(damaged, *result);
    for (reader.Seek(0); reader.Valid(); reader.Next()) at += reader.entry().length;
    REQUIRE((!reader.status().ok() || at == result->size()));
  }
}

// A recipe of `count` entries made from a seed; entry `changed`, if set, is replaced by `other`.
Recipe BuildLarge(NodeStore& nodes, size_t count, std::optional<size_t> changed,
                  const Entries& other) {
  Random random(99);
  RecipeBuilder builder(nodes);
  bool appended = true;
  for (size_t i = 0; i < count; ++i) {
    const RecipeEntry entry = RecipeEntry::Chunk(RandomName(random), 8192);
    if (i != changed) {
      appended = builder.Append(entry).ok() && appended;
    } else {
      for (const RecipeEntry& one : other) appended = builder.Append(one).ok() && appended;
    }
  }
  REQUIRE(appended);
  Result<Recipe> recipe = builder.Finish();
  REQUIRE_OK(recipe);
  return *recipe;
}

TEST_CASE("one change in two million entries reads and writes a few nodes") {
  constexpr size_t kCount = 2000000;
  MemoryNodeStore nodes;
  const Recipe recipe = BuildLarge(nodes, kCount, std::nullopt, {});
  REQUIRE(recipe.height == 3);
  Random random(27);
  const RecipeEntry chunk = RecipeEntry::Chunk(NameFrom(5), 8192);
  const RecipeEntry hole = RecipeEntry::Hole(8192);
  const std::vector<Entries> changes{{chunk}, {hole}, {}, {chunk, chunk}, {hole, chunk, hole}};
  size_t changed = 0, read = 0, written = 0;
  for (int round = 0; round < 100; ++round) {
    changed = round == 0 ? 0 : round == 1 ? kCount - 1 : random.Below(kCount);
    const Entries& change = changes[static_cast<size_t>(round) % changes.size()];
    const size_t before = nodes.nodes.size();
    nodes.ResetCounts();
    const Recipe result = Spliced(nodes, recipe, {{changed * 8192, (changed + 1) * 8192, change}});
    INFO("entry " << changed << " became " << change.size() << ": " << nodes.gets << " read, "
                  << nodes.puts << " written");
    CHECK(nodes.gets <= 40);
    CHECK(nodes.puts <= 40);
    CHECK(nodes.nodes.size() - before <= 40);
    read += nodes.gets;
    written += nodes.puts;
    if (round == 49) {
      MemoryNodeStore scratch;
      CHECK(result == BuildLarge(scratch, kCount, changed, change));
    }
  }
  // The splice reads the path to the change and about one more node, but not, for example, the
  // right edge of the tree.
  CHECK(read <= 400);
  CHECK(written <= 400);
}

TEST_CASE("behind a change, old nodes are reused even if all of them end in holes") {
  Random random(29);
  MemoryNodeStore nodes;
  Entries model;
  for (int i = 0; i < 30000; ++i) {  // each node ends at its maximum, after a hole
    model.push_back(RecipeEntry::Chunk(RandomName(random, Names::kNeverEnd), 100));
    model.push_back(RecipeEntry::Hole(50));
  }
  const Recipe recipe = Build(nodes, model);
  nodes.ResetCounts();
  const std::vector<Splice> splices{
      {150 * 10000, 150 * 10000 + 100, {RecipeEntry::Chunk(NameFrom(1), 100)}}};
  const Recipe result = Spliced(nodes, recipe, splices);
  CHECK(nodes.gets <= 6);
  CHECK(nodes.puts <= 6);
  MemoryNodeStore scratch;
  CHECK(result == Build(scratch, ModelSplice(model, splices)));
}

TEST_CASE("appending to a large recipe reads and writes the right edge only") {
  MemoryNodeStore nodes;
  Recipe recipe = BuildLarge(nodes, 200000, std::nullopt, {});
  Random random(28);
  for (int round = 0; round < 300; ++round) {
    nodes.ResetCounts();
    const Entries more = RandomEntries(random, 1 + random.Below(20), {Names::kRandom, 0});
    recipe = Spliced(nodes, recipe, {{recipe.size(), recipe.size(), more}});
    CHECK(nodes.gets <= recipe.height);
    CHECK(nodes.puts <= recipe.height * 2u);
  }
}

TEST_CASE("many small changes in one place read its nodes once") {
  MemoryNodeStore nodes;
  const Recipe recipe = BuildLarge(nodes, 200000, std::nullopt, {});
  std::vector<Splice> splices;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t at = (100000 + 3 * i) * 8192;
    splices.push_back({at, at + 8192, {RecipeEntry::Hole(8192)}});
  }
  nodes.ResetCounts();
  Spliced(nodes, recipe, splices);
  CHECK(nodes.gets <= 30);
  CHECK(nodes.puts <= 30);
}

// Replaces [to, to + length) of the old recipe by [from, from + length) of `other`.
struct Transplant {
  uint64_t to = 0;
  uint64_t to_end = 0;
  uint64_t from = 0;
  uint64_t from_end = 0;
};

Result<Recipe> Transplanted(NodeStore& nodes, const Recipe& old, const Recipe& other,
                            const Transplant& part) {
  RecipeSplicer splicer(nodes, old);
  SILTFS_RETURN_IF_ERROR(splicer.Keep(part.to));
  SILTFS_RETURN_IF_ERROR(splicer.Skip(part.to_end));
  SILTFS_RETURN_IF_ERROR(
      splicer.AppendFrom(other, part.from, part.from_end, part.to_end == old.size()));
  return splicer.Finish();
}

TEST_CASE("parts of another recipe give the same recipe as a build from scratch") {
  const size_t count = GENERATE(0, 1, 40, 200, 2000, 20000);
  const Names names = GENERATE(Names::kRandom, Names::kFew, Names::kAlwaysEnd, Names::kNeverEnd);
  const unsigned holes = GENERATE(0u, 2u, 8u);
  const EntryStyle style{names, holes};
  Random random(count * 64 + static_cast<unsigned>(names) * 16 + holes + 7);
  MemoryNodeStore nodes;
  const Entries old_entries = Merged(RandomEntries(random, count, style));
  const Entries other_entries = Merged(RandomEntries(random, random.Below(20000), style));
  const Recipe old = Build(nodes, old_entries);
  const Recipe other = Build(nodes, other_entries);
  const Boundaries old_places(old_entries);
  const Boundaries other_places(other_entries);
  for (int round = 0; round < 8; ++round) {
    INFO("count " << count << ", names " << static_cast<int>(names) << ", round " << round);
    auto two = [&random](const Boundaries& places, bool whole) {
      uint64_t a = places.At(random, random.Below(places.count() + 1));
      uint64_t b = places.At(random, random.Below(places.count() + 1));
      if (random.OneIn(3) || whole) a = 0;
      if (random.OneIn(3) || whole) b = places.size();
      return std::pair(std::min(a, b), std::max(a, b));
    };
    Transplant part;
    std::tie(part.to, part.to_end) = two(old_places, round == 0);
    std::tie(part.from, part.from_end) = two(other_places, round <= 1);
    const Result<Recipe> result = Transplanted(nodes, old, other, part);
    REQUIRE_OK(result);
    MemoryNodeStore scratch;
    const Entries inserted = Slice(other_entries, part.from, part.from_end);
    REQUIRE(*result ==
            Build(scratch, ModelSplice(old_entries, {{part.to, part.to_end, inserted}})));
  }
}

TEST_CASE("a large part of another recipe is copied by reading and writing a few nodes") {
  MemoryNodeStore nodes;
  const Recipe other = BuildLarge(nodes, 500000, std::nullopt, {});
  Random random(31);
  const Recipe old = Build(nodes, RandomEntries(random, 5000, {Names::kRandom, 0}));
  nodes.ResetCounts();
  const Result<Recipe> whole = Transplanted(nodes, old, other, {0, old.size(), 0, other.size()});
  REQUIRE_OK(whole);
  CHECK(*whole == other);
  CHECK(nodes.gets + nodes.puts == 0);

  const Transplant part{old.size(), old.size(), 8192 * 100'003ULL, 8192 * 400'001ULL};
  nodes.ResetCounts();
  const Result<Recipe> appended = Transplanted(nodes, old, other, part);
  REQUIRE_OK(appended);
  CHECK(appended->size() == old.size() + 8192 * 299'998ULL);
  CHECK(nodes.gets <= 40);
  CHECK(nodes.puts <= 20);
}

TEST_CASE("parts of another recipe in disorder, beyond the end or inside a chunk are refused") {
  MemoryNodeStore nodes;
  const Recipe other = Build(nodes, Entries(200, RecipeEntry::Chunk(NameFrom(1), 100)));
  const Recipe empty;
  REQUIRE_CODE(Transplanted(nodes, empty, other, {0, 0, 50, 200}), kInvalidArgument);
  REQUIRE_CODE(Transplanted(nodes, empty, other, {0, 0, 100, 250}), kInvalidArgument);
  REQUIRE_CODE(Transplanted(nodes, empty, other, {0, 0, 200, 100}), kInvalidArgument);
  REQUIRE_CODE(Transplanted(nodes, empty, other, {0, 0, 0, 20100}), kInvalidArgument);
}

}  // namespace
}  // namespace siltfs::testing
