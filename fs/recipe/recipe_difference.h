// What a recipe refers to that another one does not, such as a new version of a file and the old
// one.
//
// Equal subtrees are not read: on each level, only nodes that one of the recipes has alone are
// read. So the cost is proportional to the difference. A chunk may be visited although the old
// recipe has it: all chunks of new leaves are visited.
//
// Thread-safety: one thread. Memory: some 100 bytes for each node of a level that differs; none if
// the old recipe is empty. Errors:
// those of NodeStore::GetNode and of the visitor; kCorruption, with the node's name, for a node
// that differs from its parent's reference.
#pragma once

#include <cstdint>
#include <functional>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"

namespace siltfs {

struct NewReferences {
  // Called for each node that the old recipe does not have at this level, before it is read. If it
  // returns false, the node and its subtree are skipped.
  std::function<Result<bool>(const RecipeChild& node, uint8_t level)> node;
  // Called for each chunk in these nodes, and for the new chunks of the root.
  std::function<Status(const RecipeEntry& chunk)> chunk;
};

Status ForEachNewReference(NodeStore& nodes, const Recipe& old, const Recipe& recipe,
                           const NewReferences& visitor);

}  // namespace siltfs
