#include "fs/recipe/recipe_difference.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fs/recipe/recipe_reader.h"

namespace siltfs {
namespace {

using Children = std::vector<RecipeChild>;

struct HashOfName {
  template <typename Item>
  size_t operator()(const Item& item) const {
    return std::hash<ChunkName>()(item.name);
  }
};

// References are equal only if all their fields are: of two references to one node, one may have
// wrong sums.
using ChildSet = std::unordered_set<RecipeChild, HashOfName>;
using EntrySet = std::unordered_set<RecipeEntry, HashOfName>;

ChildSet SetOf(const Children& children) { return {children.begin(), children.end()}; }

void RemoveKnown(Children& children, const ChildSet& known) {
  std::erase_if(children, [&known](const RecipeChild& child) { return known.contains(child); });
}

void Append(Children& to, const Children& children) {
  to.insert(to.end(), children.begin(), children.end());
}

// The nodes of the level to which the root refers.
const Children& RootChildren(const Recipe& recipe, unsigned level) {
  static const Children kNone;
  return recipe.height == level + 1 ? recipe.children : kNone;
}

// Depth first, so that memory does not depend on the size of the file.
Status VisitAll(NodeStore& nodes, const Recipe& recipe, const NewReferences& visitor) {
  std::optional<Status> failure;
  RecipeVisitor walk;
  walk.node = [&](const RecipeChild& node, uint8_t level, uint64_t) {
    if (failure) return false;
    const Result<bool> enter = visitor.node(node, level);
    if (!enter.ok()) failure = enter.status();
    return enter.ok() && *enter;
  };
  walk.entry = [&](const RecipeEntry& entry, uint64_t) {
    return entry.is_hole() ? Status::Ok() : visitor.chunk(entry);
  };
  SILTFS_RETURN_IF_ERROR(WalkRecipe(nodes, recipe, walk));
  return failure ? *failure : Status::Ok();
}

class DifferenceWalk {
 public:
  DifferenceWalk(NodeStore& nodes, const Recipe& old, const Recipe& recipe,
                 const NewReferences& visitor)
      : nodes_(nodes), old_(old), recipe_(recipe), visitor_(visitor) {}

  Status Run() {
    for (unsigned level = std::max(old_.height, recipe_.height); level-- > 0;) {
      Append(old_level_, RootChildren(old_, level));
      Append(new_level_, RootChildren(recipe_, level));
      const ChildSet old_nodes = SetOf(old_level_);
      RemoveKnown(old_level_, SetOf(new_level_));
      RemoveKnown(new_level_, old_nodes);
      SILTFS_RETURN_IF_ERROR(ReadNew(static_cast<uint8_t>(level)));
      // Nodes of the old recipe are needed only to compare the next level with them.
      const bool more = !new_level_.empty() || recipe_.height <= level;
      if (level > 0 && more) SILTFS_RETURN_IF_ERROR(ReadOld(static_cast<uint8_t>(level)));
    }
    EntrySet known(old_.entries.begin(), old_.entries.end());
    for (const RecipeEntry& entry : recipe_.entries) {
      if (!entry.is_hole() && known.insert(entry).second)
        SILTFS_RETURN_IF_ERROR(visitor_.chunk(entry));
    }
    return Status::Ok();
  }

 private:
  Status ReadNew(uint8_t level) {
    ChildSet met;
    for (const RecipeChild& child : std::exchange(new_level_, {})) {
      if (!met.insert(child).second) continue;
      SILTFS_ASSIGN_OR_RETURN(const bool enter, visitor_.node(child, level));
      if (!enter) continue;
      SILTFS_ASSIGN_OR_RETURN(const RecipeNode node, ReadNode(nodes_, child, level));
      Append(new_level_, node.children);
      for (const RecipeEntry& entry : node.entries) {
        if (!entry.is_hole()) SILTFS_RETURN_IF_ERROR(visitor_.chunk(entry));
      }
    }
    return Status::Ok();
  }

  Status ReadOld(uint8_t level) {
    ChildSet met;
    for (const RecipeChild& child : std::exchange(old_level_, {})) {
      if (!met.insert(child).second) continue;
      SILTFS_ASSIGN_OR_RETURN(const RecipeNode node, ReadNode(nodes_, child, level));
      Append(old_level_, node.children);
    }
    return Status::Ok();
  }

  NodeStore& nodes_;
  const Recipe& old_;
  const Recipe& recipe_;
  const NewReferences& visitor_;
  // The nodes of a level that only one of the recipes has.
  Children old_level_;
  Children new_level_;
};

}  // namespace

Status ForEachNewReference(NodeStore& nodes, const Recipe& old, const Recipe& recipe,
                           const NewReferences& visitor) {
  if (old.size() == 0) return VisitAll(nodes, recipe, visitor);
  return DifferenceWalk(nodes, old, recipe, visitor).Run();
}

}  // namespace siltfs
