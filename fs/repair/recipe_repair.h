// Recipes whose lost chunks and unreadable nodes become holes.
//
// Nodes are replaced one for one, each once, however many places lead to it; nodes without a loss
// stay as they are. So the work is bounded by the nodes that are stored, not by the entries that a
// recipe stands for. A new tree is valid, but not canonical near the losses: its nodes may be
// shorter than the rule of cutting has them.
//
// Not thread-safe. Errors: those of the node stores. Memory: some 100 bytes a node with a loss,
// beside that of SubtreeSet.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/dedup/subtree_set.h"
#include "fs/meta/recipe.h"
#include "fs/meta/recipe_node.h"

namespace siltfs {

class RecipeRepair {
 public:
  using IsLost = std::function<bool(const ChunkName& chunk)>;

  // Reads old nodes from `nodes`, and puts new ones into `writer`.
  RecipeRepair(NodeStore& nodes, NodeStore& writer, IsLost is_lost)
      : nodes_(nodes), writer_(writer), is_lost_(std::move(is_lost)) {}

  // True if something in the recipe was lost; it then is the new one. Each lost range is added to
  // `lost`. Behind kMostRanges of a file, a range is a whole subtree in which something was lost.
  Result<bool> Repair(uint64_t inode, Recipe& recipe, std::vector<LostRange>& lost);

 private:
  static constexpr size_t kMostRanges = size_t{1} << 14;

  Result<RecipeChild> Repaired(const RecipeChild& child, uint8_t level);
  Result<RecipeChild> Rewritten(const RecipeChild& child, const RecipeNode& node);
  // A node of this level that holds nothing but a hole.
  Result<RecipeChild> HoleNode(uint64_t bytes, uint8_t level);
  template <typename Item>
  Result<RecipeChild> Put(uint8_t level, const std::vector<Item>& items);
  // False if nothing was lost.
  bool RepairEntries(std::vector<RecipeEntry>& entries) const;
  Status List(uint64_t inode, const Recipe& recipe, std::vector<LostRange>& lost) const;

  NodeStore& nodes_;
  NodeStore& writer_;
  const IsLost is_lost_;
  SubtreeSet whole_;
  std::unordered_map<ChunkName, RecipeChild> replaced_;  // by SubtreeSet::KeyOf
};

}  // namespace siltfs
