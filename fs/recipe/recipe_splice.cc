#include "fs/recipe/recipe_splice.h"

#include <algorithm>

namespace siltfs {
namespace {

Status Invalid(const char* what) { return Status(StatusCode::kInvalidArgument, what); }

}  // namespace

Status RecipeSplicer::CheckEnd(const Walk& walk, uint64_t end) {
  if (end < walk.position() || end > walk.cursor.size())
    return Invalid("splices out of order or beyond the end");
  return Status::Ok();
}

Result<RecipeEntry> RecipeSplicer::TakeEntry(Walk& walk, uint64_t end) {
  RecipeEntry part = walk.cursor.entry();
  const uint64_t rest = part.length - walk.within;
  part.length = std::min(rest, end - walk.position());
  if (!part.is_hole() && part.length < rest)
    return Invalid("a splice begins or ends inside a chunk");
  if (part.length == rest) {
    walk.within = 0;
    walk.cursor.Advance();
  } else {
    walk.within += part.length;
  }
  return part;
}

Status RecipeSplicer::Copy(Walk& from, uint64_t end, bool finish) {
  SILTFS_RETURN_IF_ERROR(CheckEnd(from, end));
  RecipeCursor& cursor = from.cursor;
  while (from.position() < end) {
    if (cursor.level() == 0) {
      SILTFS_ASSIGN_OR_RETURN(const RecipeEntry part, TakeEntry(from, end));
      SILTFS_RETURN_IF_ERROR(builder_.Append(part));
      // Another entry of the same recipe follows. If this one is a hole, the next one is not,
      // because a recipe has no adjacent holes. So the hole ends here.
      if (from.position() < end) SILTFS_RETURN_IF_ERROR(builder_.EndHole());
      continue;
    }
    const uint64_t item_end = cursor.offset() + cursor.item_bytes();
    const bool last = item_end == cursor.size();
    // A subtree that ends where a change begins may end in a hole that the change lengthens, so it
    // is not reused.
    const bool whole = finish ? item_end <= end : item_end < end;
    if (whole && !builder_.MayReuse(cursor.level(), last) && ++out_of_step_ > kMostOutOfStep)
      SILTFS_RETURN_IF_ERROR(builder_.Align(cursor.level()));
    if (whole && builder_.MayReuse(cursor.level(), last)) {
      SILTFS_RETURN_IF_ERROR(builder_.AppendSubtree(cursor.level(), cursor.child(), last));
      cursor.Advance();
    } else {
      SILTFS_RETURN_IF_ERROR(cursor.Descend());
    }
  }
  return Status::Ok();
}

Status RecipeSplicer::SkipIn(Walk& walk, uint64_t end) {
  SILTFS_RETURN_IF_ERROR(CheckEnd(walk, end));
  RecipeCursor& cursor = walk.cursor;
  while (walk.position() < end) {
    if (cursor.level() == 0) {
      SILTFS_RETURN_IF_ERROR(TakeEntry(walk, end).status());
    } else if (cursor.offset() + cursor.item_bytes() <= end) {
      cursor.Advance();
    } else {
      SILTFS_RETURN_IF_ERROR(cursor.Descend());
    }
  }
  return Status::Ok();
}

Status RecipeSplicer::AppendFrom(const Recipe& other, uint64_t begin, uint64_t end, bool last) {
  Walk walk{RecipeCursor(nodes_, other)};
  out_of_step_ = 0;
  SILTFS_RETURN_IF_ERROR(SkipIn(walk, begin));
  return Copy(walk, end, last && end == walk.cursor.size());
}

Result<Recipe> RecipeSplicer::Finish() {
  SILTFS_RETURN_IF_ERROR(Copy(old_, old_.cursor.size(), true));
  return builder_.Finish();
}

Result<Recipe> SpliceRecipe(NodeStore& nodes, const Recipe& old,
                            const std::vector<Splice>& splices) {
  if (splices.empty()) return old;
  RecipeSplicer splicer(nodes, old);
  for (const Splice& splice : splices) {
    SILTFS_RETURN_IF_ERROR(splicer.Keep(splice.begin));
    SILTFS_RETURN_IF_ERROR(splicer.Skip(splice.end));
    for (const RecipeEntry& entry : splice.entries) SILTFS_RETURN_IF_ERROR(splicer.Append(entry));
  }
  return splicer.Finish();
}

}  // namespace siltfs
