// A position in a recipe's tree: an item (an entry or a reference to a node) at some level, and the
// path to it from the root. RecipeReader, RecipeSplicer and WalkRecipe use it.
//
// Holds one decoded node per level, at most 20 KiB each. It does not read a node twice in a row, so
// an ordered walk reads each node once. Not thread-safe; `nodes` must outlive the cursor; the
// recipe is copied.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/status.h"

namespace siltfs {

class RecipeCursor {
 public:
  // The cursor begins at the first item of the root.
  RecipeCursor(NodeStore& nodes, const Recipe& recipe);

  bool AtEnd() const { return offset_ >= size_; }
  uint64_t size() const { return size_; }      // of the file
  uint64_t offset() const { return offset_; }  // in the file, where the item begins

  // Call the next four functions only if !AtEnd().
  uint8_t level() const { return level_; }
  uint64_t item_bytes() const;
  const RecipeEntry& entry() const;  // if level() == 0
  const RecipeChild& child() const;  // if level() >= 1; refers to a node on level level() - 1

  // Moves to the first item of child(). A failure leaves the cursor unchanged.
  Status Descend();
  // Moves to the item that begins where this item ends, on the highest level that has such an item.
  void Advance();
  // Moves to the entry that holds byte `offset`, or to the end if there is none. After a failure
  // the cursor is at the unreadable child.
  Status Seek(uint64_t offset);

 private:
  struct Frame {
    RecipeNode node;
    RecipeChild source;  // the reference to `node`; default while there is no node
    uint64_t begin = 0;  // in the file, of the node's first item
    size_t index = 0;    // of the item in the node
  };

  NodeStore& nodes_;
  const uint64_t size_;
  std::vector<Frame> frames_;  // by level; those from level_ up are the path
  uint8_t level_;
  uint64_t offset_ = 0;
};

}  // namespace siltfs
