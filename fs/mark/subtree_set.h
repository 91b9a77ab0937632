// The references to recipe nodes that a walk has met. With this set, the walk visits a subtree only
// once, even if many places share it. A few nodes that share their subtrees can stand for 2^44
// entries, and a walk without such a set would not end.
//
// A reference is identified by all its fields (name, level, length and sums), because two
// references with one name may have different sums, and only one of them can be right. Not
// thread-safe. Memory: about 25 bytes for each node of level 1 or above, which is 4 MiB in a store
// of 10 TB. A leaf (level 0) takes as much, but only the first kMostLeaves leaves are kept. A leaf
// that is not kept counts as new each time. This multiplies the work at most by the number of items
// in a node.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fs/mark/node_set.h"
#include "fs/recipe/recipe_entry.h"

namespace siltfs {

class SubtreeSet {
 public:
  static constexpr size_t kMostLeaves = size_t{1} << 20;

  // `level` is the node's own.
  static ChunkName KeyOf(const RecipeChild& node, uint8_t level);

  // Adds the reference; false if the set already had it.
  bool Insert(const RecipeChild& node, uint8_t level) { return Insert(KeyOf(node, level), level); }
  bool Insert(const ChunkName& key, uint8_t level);
  bool Contains(const RecipeChild& node, uint8_t level) const;

 private:
  NodeSet leaves_{NodeSet::kWholeNames};
  NodeSet inner_{NodeSet::kWholeNames};
};

}  // namespace siltfs
