// A file's immutable content: an ordered list of chunks and holes, as a Merkle tree of nodes stored
// as chunks.
//
// The Recipe is the root, stored in the inode. With height 0 it holds the entries themselves; with
// height h >= 1 it refers to nodes of level h - 1. Level-0 nodes (leaves) hold entries; a node of
// level k refers to nodes of level k - 1. The names of the items decide where nodes end
// (recipe_node.h), not fixed counts. So equal runs of entries make equal nodes at any offset:
// versions of a file share all nodes except those around a change.
//
// Recipes are canonical: the list of entries alone decides every node and the root. Two holes are
// never adjacent, no entry is empty, and a level that fits into the inode gets no nodes.
// recipe_splice.h describes the only recipes that are not canonical.
//
// Thread-safety: as for a plain value. Errors: kCorruption for malformed bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "fs/recipe/recipe_entry.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs {

struct Recipe {
  static constexpr uint8_t kMaxHeight = 8;
  static constexpr size_t kMaxEntries = 32;   // in the inode, height 0
  static constexpr size_t kMaxChildren = 24;  // in the inode, height >= 1

  uint8_t height = 0;
  std::vector<RecipeEntry> entries;   // height 0
  std::vector<RecipeChild> children;  // height >= 1

  RecipeTotals totals() const;
  uint64_t size() const { return totals().covered_bytes; }  // bytes of the file
  uint64_t chunk_count() const { return totals().chunk_count; }
  uint64_t hole_bytes() const { return totals().hole_bytes; }
  bool operator==(const Recipe&) const = default;

  // The encoding in the inode: 3 bytes, then 24 per chunk, 9 per hole or 48 per child. DecodeFrom
  // does not read the bytes that follow the recipe in `in`.
  void EncodeTo(Encoder& out) const;
  static Result<Recipe> DecodeFrom(Decoder& in);
  Bytes Encode() const;
  static Result<Recipe> Decode(ByteView bytes);  // nothing may follow
};

}  // namespace siltfs
