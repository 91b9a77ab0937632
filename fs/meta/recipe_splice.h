// Changing a recipe: parts of the old one are kept, the rest is replaced, also by parts of another
// recipe, and the new one shares every node outside the changes.
//
// The result is canonical, the same as if built from its whole list of entries. Nodes are read only
// around the changes: to either side of one, and from there until the nodes fall in step with the
// old ones again, a few at each level. Subtrees between are taken over unread.
//
// Where thousands of entries have no name that ends a node, as in one chunk repeated over and over,
// nodes may never fall in step again. So may nodes that someone has made and that end elsewhere
// than the rule says. After kMostOutOfStep nodes behind a change the splicer ends the open nodes
// early and takes over the old ones; such a recipe is valid, but not canonical. This bounds the
// work: a tree of a few nodes that share their subtrees can stand for 2^44 entries.
//
// Not thread-safe; the NodeStore must outlive it, the old recipe is copied. Errors: those of
// RecipeReader and RecipeBuilder; kInvalidArgument for a boundary inside a chunk or out of order.
// After an error it is of no more use.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/meta/recipe.h"
#include "fs/meta/recipe_builder.h"
#include "fs/meta/recipe_cursor.h"
#include "store/base/result.h"

namespace siltfs {

// A walk over the old recipe from its first byte to its last, with new entries in between, in
// bounded memory.
class RecipeSplicer {
 public:
  // Nodes of the old tree; honest ones fall in step after some ten.
  static constexpr size_t kMostOutOfStep = 1024;

  RecipeSplicer(NodeStore& nodes, const Recipe& old)
      : nodes_(nodes), old_{RecipeCursor(nodes, old)}, builder_(nodes) {}

  uint64_t position() const { return old_.position(); }  // in the old recipe
  uint64_t size() const { return builder_.size(); }      // bytes of the new one so far

  // Takes over / leaves out the old bytes from position() to `end`: an entry's boundary, or inside
  // a hole.
  Status Keep(uint64_t end) { return Copy(old_, end, false); }
  Status Skip(uint64_t end) {
    out_of_step_ = 0;
    return SkipIn(old_, end);
  }
  Status Append(const RecipeEntry& entry) {
    out_of_step_ = 0;
    return builder_.Append(entry);
  }
  // Appends the bytes [begin, end) of another recipe in the same store (or of this one), both of
  // them an entry's boundary or inside a hole. `last`: nothing follows but Finish, with nothing
  // left of the old recipe.
  Status AppendFrom(const Recipe& other, uint64_t begin, uint64_t end, bool last);
  // Takes over what is left of the old recipe. No call may follow.
  Result<Recipe> Finish();

 private:
  // A place in a recipe that may also be inside a hole.
  struct Walk {
    RecipeCursor cursor;
    uint64_t within = 0;  // bytes of the hole the cursor stands at that are behind us
    uint64_t position() const { return cursor.offset() + within; }
  };

  // Appends what lies before `end`. `finish`: nothing will be appended after it.
  Status Copy(Walk& from, uint64_t end, bool finish);
  static Status SkipIn(Walk& walk, uint64_t end);
  static Status CheckEnd(const Walk& walk, uint64_t end);
  // The rest of the entry the walk stands at (level 0), or its part before `end` if it is a hole;
  // moves past it.
  static Result<RecipeEntry> TakeEntry(Walk& walk, uint64_t end);

  NodeStore& nodes_;
  Walk old_;
  RecipeBuilder builder_;
  size_t out_of_step_ = 0;  // whole subtrees that were read since the last change
};

// Replaces the bytes [begin, end) of the old recipe by `entries`; begin == end inserts. A
// truncation is {new size, size, {}}, an extension {size, size, {a hole}}.
struct Splice {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::vector<RecipeEntry> entries;
};

// `splices` sorted, not overlapping.
Result<Recipe> SpliceRecipe(NodeStore& nodes, const Recipe& old,
                            const std::vector<Splice>& splices);

}  // namespace siltfs
