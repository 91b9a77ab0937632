// Replaces lost chunks and unreadable nodes of recipes by holes.
//
// A new node replaces each node with a loss. It is made once, even if many places refer to the old
// node. Nodes without a loss stay unchanged. So the work is bounded by the number of stored nodes,
// not by the number of entries that a recipe represents. A new tree is valid, but not canonical
// near the losses: its nodes may be shorter than NodeCut (recipe_node.h) allows.
//
// Not thread-safe. Errors: those of the node stores. Memory: some 100 bytes per node with a loss,
// in addition to the SubtreeSet.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/mark/subtree_set.h"
#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"

namespace siltfs {

class RecipeRepair {
 public:
  using IsLost = std::function<bool(const ChunkName& chunk)>;

  // Reads old nodes from `nodes`, and writes new ones to `writer`.
  RecipeRepair(NodeStore& nodes, NodeStore& writer, IsLost is_lost)
      : nodes_(nodes), writer_(writer), is_lost_(std::move(is_lost)) {}

  // Replaces the recipe if it has losses; returns whether it had any. Adds each lost range to
  // `lost`. After the first kMostRanges ranges of a file, each subtree with losses is added as one
  // range.
  Result<bool> Repair(uint64_t inode, Recipe& recipe, std::vector<LostRange>& lost);

 private:
  static constexpr size_t kMostRanges = size_t{1} << 14;

  Result<RecipeChild> Repaired(const RecipeChild& child, uint8_t level);
  Result<RecipeChild> Rewritten(const RecipeChild& child, const RecipeNode& node);
  // Writes a node of this level that covers only a hole of `bytes`, and returns the reference to
  // it.
  Result<RecipeChild> HoleNode(uint64_t bytes, uint8_t level);
  template <typename Item>
  Result<RecipeChild> Put(uint8_t level, const std::vector<Item>& items);
  // Replaces lost chunks by holes; returns false if there are none.
  bool RepairEntries(std::vector<RecipeEntry>& entries) const;
  Status List(uint64_t inode, const Recipe& recipe, std::vector<LostRange>& lost) const;

  NodeStore& nodes_;
  NodeStore& writer_;
  const IsLost is_lost_;
  SubtreeSet whole_;
  std::unordered_map<ChunkName, RecipeChild> replaced_;  // by SubtreeSet::KeyOf
};

}  // namespace siltfs
