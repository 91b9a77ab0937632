#include "fs/recipe/recipe_entry.h"

#include <string>

namespace siltfs {
namespace {

Status Malformed(std::string_view what, size_t index) {
  return Status(StatusCode::kCorruption,
                "recipe item " + std::to_string(index) + ": " + std::string(what));
}

RecipeEntry DecodeEntry(Decoder& in, bool& known) {
  const uint8_t kind = in.U8();
  known = true;
  if (kind == RecipeEntry::kChunk) {
    const uint32_t length = in.U24();
    const ByteView name = in.Raw(ChunkName::kSize);
    return in.ok() ? RecipeEntry::Chunk(ChunkName::FromBytes(name), length) : RecipeEntry{};
  }
  if (kind == RecipeEntry::kHole) return RecipeEntry::Hole(in.U64());
  known = false;
  return {};
}

RecipeChild DecodeChild(Decoder& in) {
  RecipeChild child;
  const ByteView name = in.Raw(ChunkName::kSize);
  child.node_bytes = in.U32();
  child.covered_bytes = in.U64();
  child.chunk_count = in.U64();
  child.hole_bytes = in.U64();
  if (in.ok()) child.name = ChunkName::FromBytes(name);
  return child;
}

}  // namespace

bool RecipeEntry::WellFormed() const {
  if (kind == kHole) return length > 0 && length <= kMaxRecipeBytes && name == ChunkName{};
  return kind == kChunk && length > 0 && length <= kMaxChunkLength;
}

bool RecipeChild::WellFormed() const {
  if (node_bytes < kMinNodeBytes || node_bytes > kMaxNodeBytes) return false;
  if (covered_bytes == 0 || covered_bytes > kMaxRecipeBytes || hole_bytes > covered_bytes)
    return false;
  const uint64_t data = covered_bytes - hole_bytes;
  const uint64_t fewest_chunks =
      (data + RecipeEntry::kMaxChunkLength - 1) / RecipeEntry::kMaxChunkLength;
  return chunk_count >= fewest_chunks && chunk_count <= data;
}

bool RecipeTotals::Add(const RecipeEntry& entry) {
  if (!entry.WellFormed() || entry.length > kMaxRecipeBytes - covered_bytes) return false;
  covered_bytes += entry.length;
  if (entry.is_hole()) {
    hole_bytes += entry.length;
  } else {
    ++chunk_count;
  }
  return true;
}

bool RecipeTotals::Add(const RecipeChild& child) {
  if (!child.WellFormed() || child.covered_bytes > kMaxRecipeBytes - covered_bytes) return false;
  covered_bytes += child.covered_bytes;
  chunk_count += child.chunk_count;
  hole_bytes += child.hole_bytes;
  return true;
}

void EncodeItem(Encoder& out, const RecipeEntry& entry) {
  out.U8(entry.kind);
  if (entry.is_hole()) {
    out.U64(entry.length);
  } else {
    out.U24(static_cast<uint32_t>(entry.length)).Raw(entry.name.view());
  }
}

void EncodeItem(Encoder& out, const RecipeChild& child) {
  out.Raw(child.name.view()).U32(child.node_bytes);
  out.U64(child.covered_bytes).U64(child.chunk_count).U64(child.hole_bytes);
}

Status DecodeItems(Decoder& in, size_t count, std::vector<RecipeEntry>& items,
                   RecipeTotals& totals) {
  items.clear();
  items.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    const RecipeEntry entry = DecodeEntry(in, known);
    if (!in.ok()) return Malformed("cut short", i);
    if (!known) return Malformed("neither a chunk nor a hole", i);
    if (entry.is_hole() && !items.empty() && items.back().is_hole())
      return Malformed("a hole next to a hole", i);
    if (!totals.Add(entry)) return Malformed("impossible length", i);
    items.push_back(entry);
  }
  return Status::Ok();
}

Status DecodeItems(Decoder& in, size_t count, std::vector<RecipeChild>& items,
                   RecipeTotals& totals) {
  items.clear();
  items.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const RecipeChild child = DecodeChild(in);
    if (!in.ok()) return Malformed("cut short", i);
    if (!totals.Add(child)) return Malformed("impossible sizes", i);
    items.push_back(child);
  }
  return Status::Ok();
}

}  // namespace siltfs
