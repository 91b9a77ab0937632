#include "fs/content/whole_content.h"

#include "chunker/zeros.h"
#include "fs/recipe/recipe_builder.h"

namespace siltfs {

Status WholeContent::Cut(uint64_t size, std::span<const Extent> extents) {
  if (size > kMaxRecipeBytes)
    return Status(StatusCode::kFileTooLarge, "the file would grow too large");
  uint64_t least = 0;
  for (const Extent& extent : extents) {
    const bool inside = !extent.bytes.empty() && extent.offset >= least && extent.offset <= size &&
                        extent.bytes.size() <= size - extent.offset;
    if (!inside) {
      return Status(StatusCode::kInvalidArgument, "the file's data contradict its size");
    }
    least = extent.offset + extent.bytes.size() + 1;  // a chunk ends only at a cut point or a hole
  }
  files_.push_back({pieces_.size(), to_put_.size()});
  uint64_t at = 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    AddHole(extents[i].offset - at);
    at = extents[i].offset + extents[i].bytes.size();
    CutExtent(extents[i].bytes);
  }
  AddHole(size - at);
  return Status::Ok();
}

void WholeContent::AddHole(uint64_t length) {
  if (length > 0) pieces_.push_back({length, true});
}

void WholeContent::CutExtent(ByteView bytes) {
  CutSequence cuts(tables_, bytes);
  while (!bytes.empty()) {
    const size_t length = cuts.Next().value_or(bytes.size());
    const ByteView chunk = bytes.first(length);
    const bool hole = IsAllZero(chunk);
    pieces_.push_back({length, hole});
    if (!hole) to_put_.push_back(chunk);
    bytes = bytes.subspan(length);
  }
}

Status WholeContent::Put() {
  names_.resize(to_put_.size());
  return to_put_.empty() ? Status::Ok() : chunks_.Put(to_put_, names_);
}

Result<Recipe> WholeContent::RecipeOf(size_t file) {
  RecipeBuilder builder(chunks_);
  const size_t end = file + 1 < files_.size() ? files_[file + 1].first_piece : pieces_.size();
  size_t chunk = files_[file].first_chunk;
  for (size_t i = files_[file].first_piece; i < end; ++i) {
    const Piece& piece = pieces_[i];
    SILTFS_RETURN_IF_ERROR(builder.Append(piece.hole
                                              ? RecipeEntry::Hole(piece.length)
                                              : RecipeEntry::Chunk(names_[chunk++], piece.length)));
  }
  return builder.Finish();
}

}  // namespace siltfs
