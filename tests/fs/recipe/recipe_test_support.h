// Shared by the tests of recipes: a counting NodeStore in memory, lists of entries drawn from
// seeds, and a simple model of a recipe's tree.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_builder.h"
#include "fs/recipe/recipe_node.h"
#include "fs/recipe/recipe_splice.h"
#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

using Entries = std::vector<RecipeEntry>;

// Names nodes by a checksum of their bytes. `last_byte`, if set, replaces the last byte of each
// name, which decides where nodes end.
class MemoryNodeStore : public NodeStore {
 public:
  Result<ChunkName> PutNode(ByteView node) override;
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;

  ChunkName NameOf(ByteView node) const;
  void ResetCounts() { puts = gets = 0; }

  std::map<ChunkName, std::shared_ptr<const Bytes>> nodes;
  std::optional<uint8_t> last_byte;
  size_t puts = 0;
  size_t gets = 0;
  std::optional<size_t> failing_put;  // the number, from 0, of the call that fails
  std::optional<size_t> failing_get;
};

enum class Names { kRandom, kFew, kAlwaysEnd, kNeverEnd };

ChunkName RandomName(Random& random, Names names = Names::kRandom);

// `holes_of_16`: how many of 16 entries are holes on average. Merged leaves fewer holes, because it
// joins adjacent ones.
struct EntryStyle {
  Names names = Names::kRandom;
  unsigned holes_of_16 = 1;
};
Entries RandomEntries(Random& random, size_t count, EntryStyle style);

Entries Merged(const Entries& entries);  // without adjacent holes
uint64_t BytesOf(const Entries& entries);
Entries Slice(const Entries& entries, uint64_t begin, uint64_t end);
Entries ModelSplice(const Entries& old, const std::vector<Splice>& splices);

// Builds the tree of `entries` by docs/format.md: each level from the complete level below it.
Recipe ModelBuild(MemoryNodeStore& nodes, const Entries& entries);

Recipe Build(NodeStore& nodes, const Entries& entries);  // with RecipeBuilder
Entries ReadAll(NodeStore& nodes, const Recipe& recipe);

ChunkName NameFrom(uint8_t first);  // first, first + 1, ...
std::string Hex(ByteView bytes);

}  // namespace siltfs::testing
