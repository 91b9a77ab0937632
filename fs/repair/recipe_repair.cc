#include "fs/repair/recipe_repair.h"

#include <type_traits>
#include <utility>

#include "fs/check/check_context.h"
#include "fs/recipe/recipe_reader.h"

namespace siltfs {

bool RecipeRepair::RepairEntries(std::vector<RecipeEntry>& entries) const {
  bool changed = false;
  std::vector<RecipeEntry> repaired;
  for (const RecipeEntry& entry : entries) {
    const bool lost = !entry.is_hole() && is_lost_(entry.name);
    changed |= lost;
    const RecipeEntry now = lost ? RecipeEntry::Hole(entry.length) : entry;
    if (now.is_hole() && !repaired.empty() && repaired.back().is_hole()) {
      repaired.back().length += now.length;
    } else {
      repaired.push_back(now);
    }
  }
  if (changed) entries = std::move(repaired);
  return changed;
}

template <typename Item>
Result<RecipeChild> RecipeRepair::Put(uint8_t level, const std::vector<Item>& items) {
  RecipeTotals totals;
  for (const Item& item : items) {
    if (!totals.Add(item)) return Status(StatusCode::kCorruption, "a recipe's sums are invalid");
  }
  Bytes bytes;
  if constexpr (std::is_same_v<Item, RecipeEntry>) {
    bytes = EncodeNode(items, totals);
  } else {
    bytes = EncodeNode(level, items, totals);
  }
  SILTFS_ASSIGN_OR_RETURN(const ChunkName name, writer_.PutNode(bytes));
  return RecipeChild{name, static_cast<uint32_t>(bytes.size()), totals.covered_bytes,
                     totals.chunk_count, totals.hole_bytes};
}

Result<RecipeChild> RecipeRepair::HoleNode(uint64_t bytes, uint8_t level) {
  SILTFS_ASSIGN_OR_RETURN(RecipeChild node,
                          Put(0, std::vector<RecipeEntry>{RecipeEntry::Hole(bytes)}));
  for (uint8_t above = 1; above <= level; ++above) {
    SILTFS_ASSIGN_OR_RETURN(node, Put(above, std::vector<RecipeChild>{node}));
  }
  return node;
}

Result<RecipeChild> RecipeRepair::Rewritten(const RecipeChild& child, const RecipeNode& node) {
  if (node.level == 0) {
    std::vector<RecipeEntry> entries = node.entries;
    if (!RepairEntries(entries)) return child;
    return Put(0, entries);
  }
  std::vector<RecipeChild> children = node.children;
  for (RecipeChild& below : children) {
    SILTFS_ASSIGN_OR_RETURN(below, Repaired(below, node.level - 1));
  }
  if (children == node.children) return child;
  return Put(node.level, children);
}

// The recursion depth is a recipe's height, at most 8.
Result<RecipeChild> RecipeRepair::Repaired(const RecipeChild& child, uint8_t level) {
  if (whole_.Contains(child, level)) return child;
  const ChunkName key = SubtreeSet::KeyOf(child, level);
  if (const auto known = replaced_.find(key); known != replaced_.end()) return known->second;
  const Result<RecipeNode> node = ReadNode(nodes_, child, level);
  if (!node.ok() && !IsDamage(node.status())) return node.status();
  Result<RecipeChild> now =
      node.ok() ? Rewritten(child, *node) : HoleNode(child.covered_bytes, level);
  if (!now.ok()) return now;
  // An unreadable node counts as lost even if its replacement has the same name.
  if (node.ok() && *now == child) {
    whole_.Insert(key, level);
  } else {
    replaced_.emplace(key, *now);
  }
  return now;
}

Result<bool> RecipeRepair::Repair(uint64_t inode, Recipe& recipe, std::vector<LostRange>& lost) {
  Recipe repaired = recipe;
  bool changed = RepairEntries(repaired.entries);
  for (RecipeChild& child : repaired.children) {
    const RecipeChild before = child;
    SILTFS_ASSIGN_OR_RETURN(child, Repaired(before, recipe.height - 1));
    changed |= replaced_.contains(SubtreeSet::KeyOf(before, recipe.height - 1));
  }
  if (!changed) return false;
  SILTFS_RETURN_IF_ERROR(List(inode, recipe, lost));
  recipe = std::move(repaired);
  return true;
}

Status RecipeRepair::List(uint64_t inode, const Recipe& recipe,
                          std::vector<LostRange>& lost) const {
  const size_t before = lost.size();
  RecipeVisitor visitor;
  visitor.node = [&](const RecipeChild& node, uint8_t level, uint64_t offset) {
    if (!replaced_.contains(SubtreeSet::KeyOf(node, level))) return false;
    if (lost.size() - before < kMostRanges) return true;
    lost.push_back({inode, offset, node.covered_bytes});
    return false;
  };
  visitor.entry = [&](const RecipeEntry& entry, uint64_t offset) {
    if (!entry.is_hole() && is_lost_(entry.name)) lost.push_back({inode, offset, entry.length});
    return Status::Ok();
  };
  visitor.damaged = [&](const RecipeChild& node, uint8_t, uint64_t offset, const Status& why) {
    if (!IsDamage(why)) return why;
    why.IgnoreError("became a hole");
    lost.push_back({inode, offset, node.covered_bytes});
    return Status::Ok();
  };
  return WalkRecipe(nodes_, recipe, visitor);
}

}  // namespace siltfs
