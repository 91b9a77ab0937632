#include "fs/recipe/recipe_cursor.h"

#include <cassert>
#include <utility>

namespace siltfs {
namespace {

uint64_t ItemBytes(const RecipeNode& node, size_t index) {
  return node.level == 0 ? node.entries[index].length : node.children[index].covered_bytes;
}

}  // namespace

RecipeCursor::RecipeCursor(NodeStore& nodes, const Recipe& recipe)
    : nodes_(nodes),
      size_(recipe.size()),
      frames_(recipe.height + size_t{1}),
      level_(recipe.height) {
  // The root's items are treated as a node of level `height`.
  frames_.back().node = {recipe.height, recipe.entries, recipe.children, recipe.totals()};
}

uint64_t RecipeCursor::item_bytes() const {
  assert(!AtEnd());
  return ItemBytes(frames_[level_].node, frames_[level_].index);
}

const RecipeEntry& RecipeCursor::entry() const {
  assert(!AtEnd() && level_ == 0);
  return frames_[0].node.entries[frames_[0].index];
}

const RecipeChild& RecipeCursor::child() const {
  assert(!AtEnd() && level_ > 0);
  return frames_[level_].node.children[frames_[level_].index];
}

Status RecipeCursor::Descend() {
  const RecipeChild& down = child();
  Frame& frame = frames_[level_ - 1];
  if (frame.source != down) {
    SILTFS_ASSIGN_OR_RETURN(RecipeNode node, ReadNode(nodes_, down, level_ - 1));
    frame.node = std::move(node);
    frame.source = down;
  }
  frame.begin = offset_;
  frame.index = 0;
  --level_;
  return Status::Ok();
}

void RecipeCursor::Advance() {
  offset_ += item_bytes();
  ++frames_[level_].index;
  while (level_ + size_t{1} < frames_.size() &&
         frames_[level_].index == frames_[level_].node.count()) {
    ++level_;
    ++frames_[level_].index;
  }
}

Status RecipeCursor::Seek(uint64_t offset) {
  const auto covers = [offset](const Frame& frame) {
    return offset >= frame.begin && offset - frame.begin < frame.node.totals.covered_bytes;
  };
  while (level_ + size_t{1} < frames_.size() && !covers(frames_[level_])) {
    offset_ = frames_[level_].begin;  // where the item above begins
    ++level_;
  }
  if (!covers(frames_[level_])) {
    frames_[level_].index = frames_[level_].node.count();
    offset_ = size_;
    return Status::Ok();
  }
  for (;;) {
    Frame& frame = frames_[level_];
    if (offset < offset_) {
      frame.index = 0;
      offset_ = frame.begin;
    }
    for (uint64_t bytes = 0; offset - offset_ >= (bytes = ItemBytes(frame.node, frame.index));
         ++frame.index) {
      offset_ += bytes;
    }
    if (level_ == 0) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(Descend());
  }
}

}  // namespace siltfs
