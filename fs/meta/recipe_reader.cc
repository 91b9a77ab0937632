#include "fs/meta/recipe_reader.h"

#include <utility>

namespace siltfs {

void RecipeReader::Seek(uint64_t offset) { Settle(cursor_.Seek(offset)); }

void RecipeReader::Next() {
  cursor_.Advance();
  Status outcome;
  while (outcome.ok() && !cursor_.AtEnd() && cursor_.level() > 0) outcome = cursor_.Descend();
  Settle(std::move(outcome));
}

void RecipeReader::Settle(Status outcome) {
  valid_ = outcome.ok() && !cursor_.AtEnd();
  // An OK outcome is no news to whoever owns the reader: assigned, it would have to be looked at in
  // each round.
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
