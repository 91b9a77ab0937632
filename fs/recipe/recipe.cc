#include "fs/recipe/recipe.h"

#include <cassert>
#include <string>

namespace siltfs {
namespace {

constexpr uint8_t kVersion = 1;

}  // namespace

RecipeTotals Recipe::totals() const {
  RecipeTotals totals;
  // The additions cannot fail: each recipe was built or decoded, which has checked its items.
  for (const RecipeEntry& entry : entries) {
    [[maybe_unused]] const bool added = totals.Add(entry);
    assert(added);
  }
  for (const RecipeChild& child : children) {
    [[maybe_unused]] const bool added = totals.Add(child);
    assert(added);
  }
  return totals;
}

void Recipe::EncodeTo(Encoder& out) const {
  assert(height == 0 ? children.empty() && entries.size() <= kMaxEntries
                     : entries.empty() && children.size() <= kMaxChildren);
  out.U8(kVersion).U8(height);
  if (height == 0) {
    out.U8(static_cast<uint8_t>(entries.size()));
    for (const RecipeEntry& entry : entries) EncodeItem(out, entry);
  } else {
    out.U8(static_cast<uint8_t>(children.size()));
    for (const RecipeChild& child : children) EncodeItem(out, child);
  }
}

Result<Recipe> Recipe::DecodeFrom(Decoder& in) {
  const uint8_t version = in.U8();
  Recipe recipe;
  recipe.height = in.U8();
  const size_t count = in.U8();
  if (!in.ok()) return Status(StatusCode::kCorruption, "recipe cut short");
  if (version != kVersion) {
    return Status(StatusCode::kCorruption, "recipe of unknown version " + std::to_string(version));
  }
  if (recipe.height > kMaxHeight) {
    return Status(StatusCode::kCorruption,
                  "recipe of impossible height " + std::to_string(recipe.height));
  }
  if (recipe.height == 0 ? count > kMaxEntries : count == 0 || count > kMaxChildren) {
    return Status(StatusCode::kCorruption,
                  "recipe with an impossible count of " + std::to_string(count));
  }
  RecipeTotals totals;
  SILTFS_RETURN_IF_ERROR(recipe.height == 0 ? DecodeItems(in, count, recipe.entries, totals)
                                            : DecodeItems(in, count, recipe.children, totals));
  return recipe;
}

Bytes Recipe::Encode() const {
  Encoder out;
  EncodeTo(out);
  return Bytes(out.view().begin(), out.view().end());
}

Result<Recipe> Recipe::Decode(ByteView bytes) {
  Decoder in(bytes);
  SILTFS_ASSIGN_OR_RETURN(Recipe recipe, DecodeFrom(in));
  if (!in.Done()) return Status(StatusCode::kCorruption, "bytes after the end of a recipe");
  return recipe;
}

}  // namespace siltfs
