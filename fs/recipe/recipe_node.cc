#include "fs/recipe/recipe_node.h"

#include <cassert>
#include <string>

#include "fs/recipe/recipe.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

static_assert(NodeCut::OfLevel(0).min > Recipe::kMaxEntries &&
                  NodeCut::OfLevel(1).min > Recipe::kMaxChildren,
              "a level that fits into the inode must never have begun a node");
static_assert(RecipeChild::kNodeHeaderSize +
                  NodeCut::OfLevel(0).max * RecipeEntry::kEncodedChunkSize <=
              RecipeChild::kMaxNodeBytes);
static_assert(RecipeChild::kNodeHeaderSize + NodeCut::OfLevel(1).max * RecipeChild::kEncodedSize <=
              RecipeChild::kMaxNodeBytes);

template <typename Item>
Bytes EncodeItems(uint8_t level, const std::vector<Item>& items, const RecipeTotals& totals) {
  assert(!items.empty() && items.size() <= NodeCut::OfLevel(level).max);
  Encoder out;
  out.U32(RecipeNode::kMagic)
      .U8(RecipeNode::kVersion)
      .U8(level)
      .U16(static_cast<uint16_t>(items.size()));
  out.U64(totals.covered_bytes).U64(totals.chunk_count).U64(totals.hole_bytes);
  assert(out.size() == RecipeChild::kNodeHeaderSize);
  for (const Item& item : items) EncodeItem(out, item);
  return Bytes(out.view().begin(), out.view().end());
}

Status Malformed(std::string what) {
  return Status(StatusCode::kCorruption, "recipe node: " + std::move(what));
}

}  // namespace

Result<RecipeNode> RecipeNode::Decode(ByteView bytes) {
  Decoder in(bytes);
  RecipeNode node;
  const uint32_t magic = in.U32();
  const uint8_t version = in.U8();
  node.level = in.U8();
  const size_t count = in.U16();
  RecipeTotals stated;
  stated.covered_bytes = in.U64();
  stated.chunk_count = in.U64();
  stated.hole_bytes = in.U64();
  if (!in.ok()) return Malformed("shorter than its header");
  if (magic != kMagic) return Malformed("wrong magic number");
  if (version != kVersion) return Malformed("unknown version " + std::to_string(version));
  if (node.level >= Recipe::kMaxHeight)
    return Malformed("impossible level " + std::to_string(node.level));
  if (count == 0 || count > NodeCut::OfLevel(node.level).max) {
    return Malformed("impossible count " + std::to_string(count));
  }
  SILTFS_RETURN_IF_ERROR(node.level == 0 ? DecodeItems(in, count, node.entries, node.totals)
                                         : DecodeItems(in, count, node.children, node.totals));
  if (!in.Done()) return Malformed("bytes after its last item");
  if (node.totals != stated) return Malformed("totals differ from the sums over its items");
  return node;
}

Bytes EncodeNode(const std::vector<RecipeEntry>& entries, const RecipeTotals& totals) {
  return EncodeItems(0, entries, totals);
}

Bytes EncodeNode(uint8_t level, const std::vector<RecipeChild>& children,
                 const RecipeTotals& totals) {
  assert(level > 0);
  return EncodeItems(level, children, totals);
}

Result<RecipeNode> ReadNode(NodeStore& nodes, const RecipeChild& child, uint8_t level) {
  const auto damaged = [&child](std::string_view cause) {
    return Status(StatusCode::kCorruption,
                  "recipe node " + child.name.ToHex() + ": " + std::string(cause));
  };
  SILTFS_ASSIGN_OR_RETURN(const std::shared_ptr<const Bytes> bytes,
                          nodes.GetNode(child.name, child.node_bytes));
  if (bytes->size() != child.node_bytes) return damaged("not as long as its parent says");
  Result<RecipeNode> node = RecipeNode::Decode(*bytes);
  if (!node.ok()) return damaged(node.status().cause());
  if (node->level != level) return damaged("not of the level its parent says");
  if (node->totals != RecipeTotals::Of(child))
    return damaged("its totals differ from its parent's");
  return node;
}

}  // namespace siltfs
