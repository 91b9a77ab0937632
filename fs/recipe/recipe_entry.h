// The items of recipes and their encoding: entries (a chunk or a hole) and references to recipe
// nodes.
//
// The decoders accept hostile bytes: they check each field and every sum, and allocate memory only
// for the number of items that the caller passes. Formats: docs/format.md, "Recipe".
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/coding.h"
#include "store/base/status.h"

namespace siltfs {

// The largest file, in bytes: the maximum of a signed 64-bit offset.
inline constexpr uint64_t kMaxRecipeBytes = (uint64_t{1} << 63) - 1;

// A run of a file: the bytes of one chunk, or a hole.
struct RecipeEntry {
  enum Kind : uint8_t { kChunk = 0, kHole = 1 };
  static constexpr uint64_t kMaxChunkLength = (1U << 24) - 1;
  static constexpr size_t kEncodedChunkSize = 24;
  static constexpr size_t kEncodedHoleSize = 9;

  Kind kind = kChunk;
  ChunkName name;  // all zeros for a hole
  // In bytes, never 0. At most kMaxChunkLength for a chunk, and kMaxRecipeBytes for a hole.
  uint64_t length = 0;

  static RecipeEntry Chunk(const ChunkName& name, uint64_t length) {
    return {kChunk, name, length};
  }
  static RecipeEntry Hole(uint64_t length) { return {kHole, ChunkName{}, length}; }

  bool is_hole() const { return kind == kHole; }
  bool WellFormed() const;
  bool operator==(const RecipeEntry&) const = default;
};

// A reference to a recipe node, with the totals of its subtree.
struct RecipeChild {
  static constexpr size_t kEncodedSize = 48;
  static constexpr size_t kNodeHeaderSize = 32;
  static constexpr uint32_t kMinNodeBytes = kNodeHeaderSize + RecipeEntry::kEncodedHoleSize;
  static constexpr uint32_t kMaxNodeBytes = kNodeHeaderSize + 512 * RecipeEntry::kEncodedChunkSize;

  ChunkName name;
  uint32_t node_bytes = 0;     // of the node itself
  uint64_t covered_bytes = 0;  // of the file, holes included
  uint64_t chunk_count = 0;    // entries that are chunks, repeated ones counted each time
  uint64_t hole_bytes = 0;

  // Whether a node can have these sizes. The name is not checked.
  bool WellFormed() const;
  bool operator==(const RecipeChild&) const = default;
};

// Sums over a list of entries or children.
struct RecipeTotals {
  uint64_t covered_bytes = 0;
  uint64_t chunk_count = 0;
  uint64_t hole_bytes = 0;

  // Returns false, and adds nothing, if the item is malformed or the sum would exceed
  // kMaxRecipeBytes.
  [[nodiscard]] bool Add(const RecipeEntry& entry);
  [[nodiscard]] bool Add(const RecipeChild& child);

  static RecipeTotals Of(const RecipeChild& child) {
    return {child.covered_bytes, child.chunk_count, child.hole_bytes};
  }
  bool operator==(const RecipeTotals&) const = default;
};

void EncodeItem(Encoder& out, const RecipeEntry& entry);
void EncodeItem(Encoder& out, const RecipeChild& child);

// DecodeItems reads `count` items, checks each of them, and adds them to `totals`. The message of
// kCorruption says what is wrong, not where.
Status DecodeItems(Decoder& in, size_t count, std::vector<RecipeEntry>& items,
                   RecipeTotals& totals);
Status DecodeItems(Decoder& in, size_t count, std::vector<RecipeChild>& items,
                   RecipeTotals& totals);

}  // namespace siltfs
