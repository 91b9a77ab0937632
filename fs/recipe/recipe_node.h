// A node of a recipe's tree: its encoding, the rule for where nodes end, and the interface of the
// store that keeps nodes.
//
// Decoding accepts hostile bytes (docs/format.md, "Recipe node"). A node has no checksum of its
// own, because the block that stores it as a chunk has one. Thread-safety: a RecipeNode is a plain
// value; a NodeStore may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/recipe/recipe_entry.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"

namespace siltfs {

// The rule for where the nodes of a level end. A node has at least `min` items. From item number
// `min` on, it ends after the first item whose name matches. A name matches if all bits of `mask`
// are zero in its last byte. Holes have no name and never match. The node ends after `max` items at
// the latest. Only the last node of a level may have fewer than `min` items. On every level, `min`
// exceeds the number of items that fit into the inode. So a level that fits into the inode has no
// nodes.
struct NodeCut {
  size_t min;
  size_t max;
  uint8_t mask;

  static constexpr NodeCut OfLevel(unsigned level) {
    return level == 0 ? NodeCut{64, 512, 0x3f}   // mean 128
                      : NodeCut{32, 256, 0x1f};  // mean 64
  }
  // Whether the node ends after its item number `count`. Items are counted from 1.
  bool After(size_t count, const RecipeEntry& item) const {
    return count >= max || (count >= min && !item.is_hole() && NameEnds(item.name));
  }
  bool After(size_t count, const RecipeChild& item) const {
    return count >= max || (count >= min && NameEnds(item.name));
  }

 private:
  bool NameEnds(const ChunkName& name) const {
    return (name.bytes[ChunkName::kSize - 1] & mask) == 0;
  }
};

struct RecipeNode {
  static constexpr uint32_t kMagic = 0x4e524653;  // "SFRN"
  static constexpr uint8_t kVersion = 1;

  uint8_t level = 0;
  std::vector<RecipeEntry> entries;   // level 0
  std::vector<RecipeChild> children;  // level >= 1: nodes of level - 1
  RecipeTotals totals;

  size_t count() const { return level == 0 ? entries.size() : children.size(); }

  // The message of kCorruption says what is wrong; the caller adds the node's name.
  static Result<RecipeNode> Decode(ByteView bytes);
};

// Encodes a node of these items. There must be at least one item, and at most NodeCut::max of the
// level.
Bytes EncodeNode(const std::vector<RecipeEntry>& entries, const RecipeTotals& totals);
Bytes EncodeNode(uint8_t level, const std::vector<RecipeChild>& children,
                 const RecipeTotals& totals);

// Keeps nodes as chunks.
class NodeStore {
 public:
  virtual ~NodeStore() = default;
  // Stores the node unless it is stored already; returns its name. The node is durable with the
  // next commit, like any chunk.
  virtual Result<ChunkName> PutNode(ByteView node) = 0;
  // Returns the node's bytes, verified against the checksum of their block. Their number is
  // `node_bytes` only if the reference to the node is right.
  virtual Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name,
                                                       uint32_t node_bytes) = 0;
};

// Reads and decodes the node of this level that `child` refers to. kCorruption, with the node's
// name, if its level, length or totals differ from the reference.
Result<RecipeNode> ReadNode(NodeStore& nodes, const RecipeChild& child, uint8_t level);

}  // namespace siltfs
