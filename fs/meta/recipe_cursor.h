// A position in a recipe's tree: an item (an entry or a reference to a node) at some level, and the
// path to it from the root. RecipeReader, RecipeSplicer and WalkRecipe use it.
//
// Holds one decoded node per level (at most 20 KiB each) and does not read a node twice in a row,
// so an ordered walk reads each node once. Not thread-safe; `nodes` must outlive it, the recipe is
// copied.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/meta/recipe.h"
#include "fs/meta/recipe_node.h"
#include "store/base/status.h"

namespace siltfs {

class RecipeCursor {
 public:
  // At the first item of the root.
  RecipeCursor(NodeStore& nodes, const Recipe& recipe);

  bool AtEnd() const { return offset_ >= size_; }
  uint64_t size() const { return size_; }      // of the file
  uint64_t offset() const { return offset_; }  // in the file, where the item begins

  // Only where !AtEnd().
  uint8_t level() const { return level_; }
  uint64_t item_bytes() const;
  const RecipeEntry& entry() const;  // level() == 0
  const RecipeChild& child() const;  // level() >= 1: a node of level() - 1

  // To the first item of child(). A failure leaves the cursor unchanged.
  Status Descend();
  // To the item that begins at this item's end, on the highest level that has one.
  void Advance();
  // To the entry that holds byte `offset`; to the end if there is none. After a failure the cursor
  // is at the unreadable child.
  Status Seek(uint64_t offset);

 private:
  struct Frame {
    RecipeNode node;
    RecipeChild source;  // the reference that `node` was read by; default while there is no node
    uint64_t begin = 0;  // in the file, of the node's first item
    size_t index = 0;    // of the item in the node
  };

  NodeStore& nodes_;
  const uint64_t size_;
  std::vector<Frame> frames_;  // by level; from level_ up they are the path
  uint8_t level_;
  uint64_t offset_ = 0;
};

}  // namespace siltfs
