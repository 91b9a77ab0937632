#include "fs/recipe/recipe_builder.h"

#include <cassert>
#include <utility>

namespace siltfs {
namespace {

Status TooLarge() {
  return Status(StatusCode::kFileTooLarge, "a recipe covers no more than 2^63 - 1 bytes");
}

template <typename Item>
RecipeTotals SumOf(const std::vector<Item>& items) {
  RecipeTotals totals;
  for (const Item& item : items) {
    [[maybe_unused]] const bool added = totals.Add(item);
    assert(added);  // checked when appended
  }
  return totals;
}

}  // namespace

Status RecipeBuilder::Append(const RecipeEntry& entry) {
  if (!entry.WellFormed() || ended_)
    return Status(StatusCode::kInvalidArgument, "a recipe cannot hold this entry here");
  if (entry.length > kMaxRecipeBytes - size()) return TooLarge();
  if (!entry.is_hole()) {
    SILTFS_RETURN_IF_ERROR(EndHole());
    return AddEntry(entry);
  }
  if (hole_ == 0 && !entries_.empty() && entries_.back().is_hole()) {
    // EndHole was called too early: this happens if a damaged tree has two adjacent holes.
    entries_.back().length += entry.length;
    totals_.covered_bytes += entry.length;
    totals_.hole_bytes += entry.length;
    return Status::Ok();
  }
  hole_ += entry.length;
  return Status::Ok();
}

Status RecipeBuilder::EndHole() {
  if (hole_ == 0) return Status::Ok();
  return AddEntry(RecipeEntry::Hole(std::exchange(hole_, 0)));
}

Status RecipeBuilder::AddEntry(const RecipeEntry& entry) {
  if (!totals_.Add(entry)) return TooLarge();
  entries_.push_back(entry);
  return NodeCut::OfLevel(0).After(entries_.size(), entry) ? CloseNode(0) : Status::Ok();
}

Status RecipeBuilder::AddChild(uint8_t level, const RecipeChild& child) {
  std::vector<RecipeChild>& items = children_[level];
  items.push_back(child);
  if (level == Recipe::kMaxHeight)
    return items.size() <= Recipe::kMaxChildren ? Status::Ok() : TooLarge();
  return NodeCut::OfLevel(level).After(items.size(), child) ? CloseNode(level) : Status::Ok();
}

Status RecipeBuilder::CloseNode(uint8_t level) {
  assert(level < Recipe::kMaxHeight && !Empty(level));
  const RecipeTotals totals = level == 0 ? SumOf(entries_) : SumOf(children_[level]);
  const Bytes node =
      level == 0 ? EncodeNode(entries_, totals) : EncodeNode(level, children_[level], totals);
  SILTFS_ASSIGN_OR_RETURN(const ChunkName name, nodes_.PutNode(node));
  entries_.clear();  // if level > 0, they are empty already
  if (level > 0) children_[level].clear();
  return AddChild(level + 1, {name, static_cast<uint32_t>(node.size()), totals.covered_bytes,
                              totals.chunk_count, totals.hole_bytes});
}

bool RecipeBuilder::AnyAtOrAbove(uint8_t level) const {
  for (unsigned i = level; i <= Recipe::kMaxHeight; ++i) {
    if (!Empty(static_cast<uint8_t>(i))) return true;
  }
  return false;
}

bool RecipeBuilder::MayReuse(uint8_t level, bool last) const {
  // In the old tree, a node begins at the subtree's first entry on every level below `level`. The
  // new tree must have the same node boundaries, so no node may be open on these levels.
  if (level == 0 || level > Recipe::kMaxHeight || ended_ || hole_ > 0) return false;
  for (uint8_t below = 0; below < level; ++below) {
    if (!Empty(below)) return false;
  }
  // The last node of a level may have so few items that they fit into the inode. If it were the
  // only node of its level, its items would have to become the root. Any other node has too many
  // items for the inode.
  return !last || AnyAtOrAbove(level);
}

Status RecipeBuilder::AppendSubtree(uint8_t level, const RecipeChild& child, bool last) {
  if (!MayReuse(level, last))
    return Status(StatusCode::kInvalidArgument, "the subtree is not in step");
  if (!totals_.Add(child)) return TooLarge();
  ended_ = last;
  return AddChild(level, child);
}

Status RecipeBuilder::Align(uint8_t level) {
  SILTFS_RETURN_IF_ERROR(EndHole());
  for (uint8_t below = 0; below < level; ++below) {
    if (!Empty(below)) SILTFS_RETURN_IF_ERROR(CloseNode(below));
  }
  return Status::Ok();
}

Result<Recipe> RecipeBuilder::Finish() {
  SILTFS_RETURN_IF_ERROR(EndHole());
  for (uint8_t level = 0; level <= Recipe::kMaxHeight; ++level) {
    const size_t count = level == 0 ? entries_.size() : children_[level].size();
    const size_t limit = level == 0 ? Recipe::kMaxEntries : Recipe::kMaxChildren;
    if (count <= limit && !(level < Recipe::kMaxHeight && AnyAtOrAbove(level + 1))) {
      Recipe recipe;
      recipe.height = level;
      recipe.entries = std::move(entries_);
      if (level > 0) recipe.children = std::move(children_[level]);
      return recipe;
    }
    if (count > 0) SILTFS_RETURN_IF_ERROR(CloseNode(level));
  }
  return TooLarge();
}

}  // namespace siltfs
