// Builds the canonical tree of a list of entries that comes in order, of any length, in bounded
// memory (the open node of each level: below 150 KiB for any file).
//
// Not thread-safe; the NodeStore must outlive the builder. Errors: what NodeStore::PutNode answers;
// kFileTooLarge beyond kMaxRecipeBytes; kInvalidArgument for an entry that may not be. After an
// error the builder is of no more use (the nodes written so far are garbage, for GC to find).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fs/meta/recipe.h"
#include "fs/meta/recipe_node.h"
#include "store/base/result.h"

namespace siltfs {

class RecipeBuilder {
 public:
  explicit RecipeBuilder(NodeStore& nodes) : nodes_(nodes) {}

  // Holes that follow each other become one.
  Status Append(const RecipeEntry& entry);
  // What comes next is known not to be a hole. (Appending a whole subtree cannot tell; so it must
  // be known.)
  Status EndHole();

  // Appends all that lies under a node of level `level` - 1 of a canonical tree, without reading
  // it. Allowed only where MayReuse; else append what the node holds, item by item. `last`: the
  // node is the last of its level in its tree, so it ended because the entries did, and only Finish
  // may follow.
  bool MayReuse(uint8_t level, bool last) const;
  Status AppendSubtree(uint8_t level, const RecipeChild& child, bool last);

  // Ends the open nodes below `level`, though nothing that was appended ends them, so that a
  // subtree of that level may follow. The tree is no longer canonical, but valid.
  Status Align(uint8_t level);

  // Of all that was appended. No call may follow.
  Result<Recipe> Finish();

  uint64_t size() const { return totals_.covered_bytes + hole_; }  // bytes appended so far

 private:
  Status AddEntry(const RecipeEntry& entry);
  Status AddChild(uint8_t level, const RecipeChild& child);
  Status CloseNode(uint8_t level);
  bool AnyAtOrAbove(uint8_t level) const;
  bool Empty(uint8_t level) const {
    return level == 0 ? entries_.empty() : children_[level].empty();
  }

  NodeStore& nodes_;
  RecipeTotals totals_;  // of all that was appended, but for hole_
  bool ended_ = false;   // the last subtree of a tree was appended
  uint64_t hole_ = 0;    // length of the hole that the next entry may still lengthen
  // The open node of each level.
  std::vector<RecipeEntry> entries_;                                       // level 0
  std::array<std::vector<RecipeChild>, Recipe::kMaxHeight + 1> children_;  // levels from 1
};

}  // namespace siltfs
