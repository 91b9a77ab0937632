#include "fs/content/clone.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fs/content/file_content.h"
#include "fs/recipe/recipe_reader.h"
#include "fs/recipe/recipe_splice.h"

namespace siltfs {
namespace {

// An overlay takes at most this many parts one by one: half of the changed ranges that one step of
// a fold handles (kFoldRanges in file_content.cc).
constexpr int kFewParts = 32;

// An entry of a recipe and its position.
struct PlacedEntry {
  RecipeEntry entry;
  uint64_t begin = 0;
  // A chunk follows in the recipe. So if `entry` is a chunk, its own content determined its end.
  bool before_chunk = false;
  uint64_t end() const { return begin + entry.length; }
};

// A part to put into the target's overlay.
struct Part {
  uint64_t offset = 0;  // in the target
  uint64_t hole_bytes = 0;
  std::vector<ChunkSlice> slices;
  Bytes plain;
};

class Cloner {
 public:
  Cloner(ChunkStore& chunks, const InodeRecord& source, const CloneRange& range,
         const InodeRecord& target)
      : chunks_(chunks),
        source_(chunks, source.recipe),
        target_(chunks, target.recipe),
        source_recipe_(source.recipe),
        target_recipe_(target.recipe),
        range_(range) {}

  // Finds the parts that cover the whole range.
  Status CoverAll() { return Cover(source_, source_begin(), source_end(), range_.target_offset); }
  // Returns the target's recipe with the range's whole chunks in it, and finds the parts at the
  // range's ends.
  Result<Recipe> Splice();

  const std::vector<Part>& parts() const { return parts_; }

 private:
  uint64_t source_begin() const { return range_.source_offset; }
  uint64_t source_end() const { return range_.source_offset + range_.length; }
  uint64_t target_begin() const { return range_.target_offset; }
  uint64_t target_end() const { return range_.target_offset + range_.length; }
  uint64_t InTarget(uint64_t source_offset) const {
    return source_offset - range_.source_offset + range_.target_offset;
  }

  // The entry at `offset`, which is below the recipe's end.
  static Result<PlacedEntry> At(RecipeReader& reader, uint64_t offset);
  // Whether a hole or the end of the recipe is at `offset`.
  static Result<bool> IsBarrier(RecipeReader& reader, const Recipe& recipe, uint64_t offset);
  // Adds parts for [begin, end) of a recipe, to be put at `target_offset`.
  Status Cover(RecipeReader& reader, uint64_t begin, uint64_t end, uint64_t target_offset);

  // The offsets in the source between which the chunks lie as a whole within the range.
  Result<uint64_t> WholeBegin();
  Result<uint64_t> WholeEnd(uint64_t whole_begin);
  // The target's recipe keeps one part before the range and one part after it. KeptBefore returns
  // the end of the first part, and KeptFrom the beginning of the second part.
  Result<uint64_t> KeptBefore();
  Result<uint64_t> KeptFrom();

  ChunkStore& chunks_;
  RecipeReader source_;
  RecipeReader target_;
  const Recipe& source_recipe_;
  const Recipe& target_recipe_;
  const CloneRange range_;
  std::vector<Part> parts_;
};

Result<PlacedEntry> Cloner::At(RecipeReader& reader, uint64_t offset) {
  reader.Seek(offset);
  if (!reader.status().ok()) return reader.status();
  if (!reader.Valid()) {
    return Status(StatusCode::kCorruption, fmt::format("the recipe ends before offset {}", offset));
  }
  PlacedEntry placed{reader.entry(), reader.entry_offset(), false};
  reader.Next();
  if (!reader.status().ok()) return reader.status();
  placed.before_chunk = reader.Valid() && !reader.entry().is_hole();
  return placed;
}

Result<bool> Cloner::IsBarrier(RecipeReader& reader, const Recipe& recipe, uint64_t offset) {
  if (offset >= recipe.size()) return true;
  SILTFS_ASSIGN_OR_RETURN(const PlacedEntry placed, At(reader, offset));
  return placed.entry.is_hole();
}

Status Cloner::Cover(RecipeReader& reader, uint64_t begin, uint64_t end, uint64_t target_offset) {
  for (uint64_t at = begin; at < end;) {
    SILTFS_ASSIGN_OR_RETURN(const PlacedEntry placed, At(reader, at));
    const uint64_t stop = std::min(end, placed.end());
    Part part;
    part.offset = target_offset + (at - begin);
    const ChunkSlice slice{.name = placed.entry.name,
                           .chunk_length = static_cast<uint32_t>(placed.entry.length),
                           .skip = static_cast<uint32_t>(at - placed.begin),
                           .length = static_cast<uint32_t>(stop - at)};
    if (placed.entry.is_hole()) {
      part.hole_bytes = stop - at;
    } else if (slice.IsWhole() && !placed.before_chunk) {
      // A hole or the end of the file ended this chunk. But a fold would keep a slice of a whole
      // chunk as it is, because it assumes that the content of the chunk determined its end. So the
      // part gets the chunk's bytes instead of a slice.
      SILTFS_ASSIGN_OR_RETURN(const ChunkBytes chunk, chunks_.Get(slice.name, slice.chunk_length));
      part.plain.assign(chunk.bytes.begin(), chunk.bytes.end());
    } else {
      part.slices.push_back(slice);
    }
    parts_.push_back(std::move(part));
    at = stop;
  }
  return Status::Ok();
}

Result<uint64_t> Cloner::WholeBegin() {
  SILTFS_ASSIGN_OR_RETURN(const PlacedEntry first, At(source_, source_begin()));
  if (first.entry.is_hole() || first.begin == source_begin()) return source_begin();
  return std::min(first.end(), source_end());
}

Result<uint64_t> Cloner::WholeEnd(uint64_t whole_begin) {
  SILTFS_ASSIGN_OR_RETURN(const PlacedEntry last, At(source_, source_end() - 1));
  if (last.entry.is_hole()) return source_end();
  if (last.end() == source_end()) {
    if (last.before_chunk) return source_end();
    // A hole or the end of the file ended this chunk. The chunk stays whole if a hole or the end of
    // the recipe follows the range in the target, too.
    SILTFS_ASSIGN_OR_RETURN(const bool barrier, IsBarrier(target_, target_recipe_, target_end()));
    if (barrier) return source_end();
  }
  return std::max(whole_begin, last.begin);
}

Result<uint64_t> Cloner::KeptBefore() {
  const uint64_t begin = target_begin();
  if (begin > target_recipe_.size()) return target_recipe_.size();
  if (begin == 0) return begin;
  SILTFS_ASSIGN_OR_RETURN(const PlacedEntry before, At(target_, begin - 1));
  if (before.entry.is_hole()) return begin;
  if (before.end() > begin) return before.begin;
  if (before.before_chunk) return begin;
  // A hole or the end of the file ended this chunk. The chunk stays if the source has a hole, or
  // the end of its recipe, at the beginning of the range.
  SILTFS_ASSIGN_OR_RETURN(const bool barrier, IsBarrier(source_, source_recipe_, source_begin()));
  return barrier ? begin : before.begin;
}

Result<uint64_t> Cloner::KeptFrom() {
  if (target_end() >= target_recipe_.size()) return target_recipe_.size();
  SILTFS_ASSIGN_OR_RETURN(const PlacedEntry behind, At(target_, target_end()));
  if (behind.entry.is_hole() || behind.begin == target_end()) return target_end();
  return behind.end();
}

Result<Recipe> Cloner::Splice() {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t whole_begin, WholeBegin());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t whole_end, WholeEnd(whole_begin));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t kept_before, KeptBefore());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t kept_from, KeptFrom());

  RecipeSplicer splicer(chunks_, target_recipe_);
  const auto fill_to = [&splicer](uint64_t end) {
    if (splicer.size() >= end) return Status::Ok();
    return splicer.Append(RecipeEntry::Hole(end - splicer.size()));
  };
  SILTFS_RETURN_IF_ERROR(splicer.Keep(kept_before));
  SILTFS_RETURN_IF_ERROR(splicer.Skip(kept_from));
  SILTFS_RETURN_IF_ERROR(fill_to(InTarget(whole_begin)));
  if (whole_begin < whole_end) {
    const bool last = whole_end == source_end() && target_end() >= target_recipe_.size();
    SILTFS_RETURN_IF_ERROR(splicer.AppendFrom(source_recipe_, whole_begin, whole_end, last));
  }
  SILTFS_RETURN_IF_ERROR(fill_to(std::max(target_end(), kept_from)));
  SILTFS_ASSIGN_OR_RETURN(Recipe recipe, splicer.Finish());

  if (kept_before < target_recipe_.size() && kept_before < target_begin()) {
    SILTFS_RETURN_IF_ERROR(
        Cover(target_, kept_before, std::min(target_begin(), target_recipe_.size()), kept_before));
  }
  SILTFS_RETURN_IF_ERROR(Cover(source_, source_begin(), whole_begin, target_begin()));
  SILTFS_RETURN_IF_ERROR(Cover(source_, whole_end, source_end(), InTarget(whole_end)));
  SILTFS_RETURN_IF_ERROR(Cover(target_, target_end(), kept_from, target_end()));
  return recipe;
}

}  // namespace

Result<bool> HasFewParts(ChunkStore& chunks, const InodeRecord& source, uint64_t offset,
                         uint64_t length) {
  RecipeReader reader(chunks, source.recipe);
  int parts = 0;
  for (reader.Seek(offset); reader.Valid() && reader.entry_offset() < offset + length;
       reader.Next()) {
    if (++parts > kFewParts) return false;
  }
  SILTFS_RETURN_IF_ERROR(reader.status());
  return true;
}

Status CloneIntoFile(ChunkStore& chunks, const InodeRecord& source, const CloneRange& range,
                     InodeRecord& target, Overlay& target_overlay) {
  Cloner cloner(chunks, source, range, target);
  if (FileContent::IsFolded(target)) {
    SILTFS_ASSIGN_OR_RETURN(Recipe recipe, cloner.Splice());
    target.recipe_limit = recipe.size();
    target.recipe = std::move(recipe);
  } else {
    SILTFS_RETURN_IF_ERROR(cloner.CoverAll());
  }
  for (const Part& part : cloner.parts()) {
    target_overlay.PutHole(part.offset, part.hole_bytes);
    target_overlay.PutSlices(part.offset, part.slices);
    target_overlay.PutRaw(part.offset, part.plain);
  }
  target.size = std::max(target.size, range.target_offset + range.length);
  return Status::Ok();
}

}  // namespace siltfs
