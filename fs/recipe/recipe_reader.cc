#include "fs/recipe/recipe_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace siltfs {
namespace {

// Whether the cursor's item is a hole; nullopt if it holds both holes and data.
std::optional<bool> IsHole(const RecipeCursor& cursor) {
  if (cursor.level() == 0) return cursor.entry().is_hole();
  const RecipeChild& child = cursor.child();
  if (child.hole_bytes == 0) return false;
  if (child.hole_bytes == child.covered_bytes) return true;
  return std::nullopt;
}

Result<uint64_t> Find(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end,
                      bool hole) {
  RecipeCursor cursor(nodes, recipe);
  while (!cursor.AtEnd() && cursor.offset() < end) {
    if (cursor.offset() + cursor.item_bytes() <= begin) {
      cursor.Advance();
      continue;
    }
    const std::optional<bool> is_hole = IsHole(cursor);
    if (!is_hole) {
      SILTFS_RETURN_IF_ERROR(cursor.Descend());
    } else if (*is_hole == hole) {
      return std::max(begin, cursor.offset());
    } else {
      cursor.Advance();
    }
  }
  return end;
}

}  // namespace

void RecipeReader::Seek(uint64_t offset) { Finish(cursor_.Seek(offset)); }

void RecipeReader::Next() {
  cursor_.Advance();
  Status outcome;
  while (outcome.ok() && !cursor_.AtEnd() && cursor_.level() > 0) outcome = cursor_.Descend();
  Finish(std::move(outcome));
}

void RecipeReader::Finish(Status outcome) {
  valid_ = outcome.ok() && !cursor_.AtEnd();
  // Do not assign OK over OK. The program aborts if an assigned Status is never read
  // (SILTFS_CHECK_STATUS), so the caller would have to read status() after each call.
  if (!outcome.ok() || !status_.ok()) status_ = std::move(outcome);
}

Status WalkRecipe(NodeStore& nodes, const Recipe& recipe, const RecipeVisitor& visitor) {
  for (RecipeCursor cursor(nodes, recipe); !cursor.AtEnd();) {
    if (cursor.level() == 0) {
      if (visitor.entry) SILTFS_RETURN_IF_ERROR(visitor.entry(cursor.entry(), cursor.offset()));
      cursor.Advance();
      continue;
    }
    const uint8_t level = cursor.level() - 1;
    const bool wanted = !visitor.node || visitor.node(cursor.child(), level, cursor.offset());
    if (!wanted || (level == 0 && !visitor.entry)) {
      cursor.Advance();
      continue;
    }
    Status read = cursor.Descend();
    if (read.ok()) continue;
    if (!visitor.damaged) return read;
    SILTFS_RETURN_IF_ERROR(
        visitor.damaged(cursor.child(), level, cursor.offset(), std::move(read)));
    cursor.Advance();
  }
  return Status::Ok();
}

Status ForEachNode(NodeStore& nodes, const Recipe& recipe,
                   const std::function<bool(const RecipeChild& node, uint8_t level)>& visit) {
  RecipeVisitor visitor;
  visitor.node = [&visit](const RecipeChild& node, uint8_t level, uint64_t) {
    return visit(node, level);
  };
  return WalkRecipe(nodes, recipe, visitor);
}

Result<uint64_t> FindHole(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end) {
  return Find(nodes, recipe, begin, end, true);
}

Result<uint64_t> FindData(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end) {
  return Find(nodes, recipe, begin, end, false);
}

Status ForEachChunk(
    NodeStore& nodes, const Recipe& recipe,
    const std::function<Status(const ChunkName& name, uint64_t length, uint64_t offset)>& visit) {
  RecipeVisitor visitor;
  visitor.entry = [&visit](const RecipeEntry& entry, uint64_t offset) {
    return entry.is_hole() ? Status::Ok() : visit(entry.name, entry.length, offset);
  };
  return WalkRecipe(nodes, recipe, visitor);
}

}  // namespace siltfs
