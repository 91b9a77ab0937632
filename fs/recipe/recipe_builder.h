// Builds the canonical tree of an ordered list of entries, of any length. Memory: the open node of
// each level, below 150 KiB for any file.
//
// Not thread-safe; the NodeStore must outlive the builder. Errors: those of NodeStore::PutNode;
// kFileTooLarge beyond kMaxRecipeBytes; kInvalidArgument for an invalid entry. After an error the
// builder is unusable; GC removes the nodes written so far.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/result.h"

namespace siltfs {

class RecipeBuilder {
 public:
  explicit RecipeBuilder(NodeStore& nodes) : nodes_(nodes) {}

  // Appends an entry; adjacent holes become one.
  Status Append(const RecipeEntry& entry);
  // Ends the current hole. Call this only if the next entry is not a hole. AppendSubtree requires
  // the call, because it does not read the first entry of its subtree.
  Status EndHole();

  // AppendSubtree appends a subtree of a canonical tree without reading it. `child` refers to the
  // top node of the subtree, which is on level `level` - 1. The call requires MayReuse. If MayReuse
  // is false, append the items of the node one by one. `last`: the node is the last one of its
  // level in its tree. Such a node ends because the entries end, so only Finish may follow.
  bool MayReuse(uint8_t level, bool last) const;
  Status AppendSubtree(uint8_t level, const RecipeChild& child, bool last);

  // Ends the open nodes below `level` early, so that AppendSubtree may follow with the same
  // `level`. The tree is then valid but not canonical.
  Status Align(uint8_t level);

  // The recipe of all appended entries. No calls may follow.
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
  RecipeTotals totals_;  // of all appended entries, hole_ excluded
  bool ended_ = false;   // the last subtree of a tree was appended
  uint64_t hole_ = 0;    // length of the open hole; the next entry may lengthen it
  // The open node of each level.
  std::vector<RecipeEntry> entries_;                                       // level 0
  std::array<std::vector<RecipeChild>, Recipe::kMaxHeight + 1> children_;  // levels from 1
};

}  // namespace siltfs
