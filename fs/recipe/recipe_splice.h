// Changes a recipe: keeps parts of the old recipe, and replaces the rest by new entries or by parts
// of another recipe. The new recipe shares every node outside the changes with the old one.
//
// The result is canonical: equal to the recipe built from its whole list of entries. Only a few
// nodes around a change are read at each level. After the change, nodes are read until new nodes
// begin where old nodes begin (the nodes *fall in step*). All other subtrees are reused without
// being read.
//
// Sometimes the nodes do not fall in step. One case is thousands of entries without a name that
// ends a node, for example one repeated chunk. Another case is a crafted tree with nodes that do
// not end where NodeCut (recipe_node.h) ends them. When kMostOutOfStep nodes after a change were
// read, the splicer ends the open new nodes early and reuses the old nodes. The result is a valid
// recipe, but not canonical. The limit is necessary, because a few nodes that share their subtrees
// can represent 2^44 entries.
//
// Not thread-safe; the NodeStore must outlive the splicer; the old recipe is copied. Errors: those
// of RecipeReader and RecipeBuilder; kInvalidArgument for a boundary inside a chunk or out of
// order. After an error the splicer is unusable.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_builder.h"
#include "fs/recipe/recipe_cursor.h"
#include "store/base/result.h"

namespace siltfs {

// Walks the old recipe from its first byte to its last and inserts new entries, in bounded memory.
class RecipeSplicer {
 public:
  // The most nodes of the old tree that are read after a change. In a tree whose nodes end where
  // NodeCut ends them, new and old nodes usually fall in step after about ten nodes.
  static constexpr size_t kMostOutOfStep = 1024;

  RecipeSplicer(NodeStore& nodes, const Recipe& old)
      : nodes_(nodes), old_{RecipeCursor(nodes, old)}, builder_(nodes) {}

  uint64_t position() const { return old_.position(); }  // in the old recipe
  uint64_t size() const { return builder_.size(); }      // bytes of the new one so far

  // Keep keeps the old bytes from position() to `end`, and Skip drops them. `end` is an entry's
  // boundary or an offset inside a hole.
  Status Keep(uint64_t end) { return Copy(old_, end, false); }
  Status Skip(uint64_t end) {
    out_of_step_ = 0;
    return SkipIn(old_, end);
  }
  Status Append(const RecipeEntry& entry) {
    out_of_step_ = 0;
    return builder_.Append(entry);
  }
  // Appends the bytes [begin, end) of another recipe in the same store (or of this one). `begin`
  // and `end` are entries' boundaries or offsets inside a hole. `last`: only Finish follows, and no
  // bytes of the old recipe are left.
  Status AppendFrom(const Recipe& other, uint64_t begin, uint64_t end, bool last);
  // Keeps the rest of the old recipe. No calls may follow.
  Result<Recipe> Finish();

 private:
  // A position in a recipe; it may be inside a hole.
  struct Walk {
    RecipeCursor cursor;
    uint64_t within = 0;  // bytes of the hole at the cursor that are before the position
    uint64_t position() const { return cursor.offset() + within; }
  };

  // Appends the bytes before `end`. `finish`: nothing is appended after them.
  Status Copy(Walk& from, uint64_t end, bool finish);
  static Status SkipIn(Walk& walk, uint64_t end);
  static Status CheckEnd(const Walk& walk, uint64_t end);
  // Returns the rest of the walk's current entry and moves past it. If `end` lies inside a hole,
  // returns only the part of the hole before `end`. The walk must be at level 0.
  static Result<RecipeEntry> TakeEntry(Walk& walk, uint64_t end);

  NodeStore& nodes_;
  Walk old_;
  RecipeBuilder builder_;
  // How many subtrees were read since the last change although they are kept as a whole.
  size_t out_of_step_ = 0;
};

// Replaces the bytes [begin, end) of the old recipe by `entries`; begin == end inserts. A
// truncation is {new size, size, {}}, an extension {size, size, {a hole}}.
struct Splice {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::vector<RecipeEntry> entries;
};

// Applies the splices and returns the new recipe. They must be sorted and must not overlap.
Result<Recipe> SpliceRecipe(NodeStore& nodes, const Recipe& old,
                            const std::vector<Splice>& splices);

}  // namespace siltfs
