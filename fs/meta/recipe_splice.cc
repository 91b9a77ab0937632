#include "fs/meta/recipe_splice.h"

#include <algorithm>

namespace siltfs {
namespace {

Status Invalid(const char* what) { return Status(StatusCode::kInvalidArgument, what); }

}  // namespace

Status RecipeSplicer::CheckEnd(uint64_t end) const {
  if (end < position() || end > old_.size())
    return Invalid("splices out of order or beyond the end");
  return Status::Ok();
}

Result<RecipeEntry> RecipeSplicer::TakeEntry(uint64_t end) {
  RecipeEntry part = old_.entry();
  const uint64_t rest = part.length - within_;
  part.length = std::min(rest, end - position());
  if (!part.is_hole() && part.length < rest)
    return Invalid("a splice begins or ends inside a chunk");
  if (part.length == rest) {
    within_ = 0;
    old_.Advance();
  } else {
    within_ += part.length;
  }
  return part;
}

Status RecipeSplicer::Copy(uint64_t end, bool finish) {
  SILTFS_RETURN_IF_ERROR(CheckEnd(end));
  while (position() < end) {
    if (old_.level() == 0) {
      SILTFS_ASSIGN_OR_RETURN(const RecipeEntry part, TakeEntry(end));
      SILTFS_RETURN_IF_ERROR(builder_.Append(part));
      // Another old entry comes next, and no two holes stand side by side in the old recipe.
      if (position() < end) SILTFS_RETURN_IF_ERROR(builder_.EndHole());
      continue;
    }
    const uint64_t item_end = old_.offset() + old_.item_bytes();
    const bool last = item_end == old_.size();
    // A subtree that ends where a change begins may end in a hole that the change lengthens.
    const bool whole = finish ? item_end <= end : item_end < end;
    if (whole && builder_.MayReuse(old_.level(), last)) {
      SILTFS_RETURN_IF_ERROR(builder_.AppendSubtree(old_.level(), old_.child(), last));
      old_.Advance();
    } else {
      SILTFS_RETURN_IF_ERROR(old_.Descend());
    }
  }
  return Status::Ok();
}

Status RecipeSplicer::Skip(uint64_t end) {
  SILTFS_RETURN_IF_ERROR(CheckEnd(end));
  while (position() < end) {
    if (old_.level() == 0) {
      SILTFS_RETURN_IF_ERROR(TakeEntry(end).status());
    } else if (old_.offset() + old_.item_bytes() <= end) {
      old_.Advance();
    } else {
      SILTFS_RETURN_IF_ERROR(old_.Descend());
    }
  }
  return Status::Ok();
}

Result<Recipe> RecipeSplicer::Finish() {
  SILTFS_RETURN_IF_ERROR(Copy(old_.size(), true));
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
