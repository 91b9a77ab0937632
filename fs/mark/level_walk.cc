#include "fs/mark/level_walk.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace siltfs {
namespace {

// A reference to a node.
struct NodeReference {
  RecipeChild child;
  uint64_t mark = 0;
  uint64_t order = 0;  // of the walk

  // For sorting by name: the name and the length of the node come first, the order comes last.
  EightWords ByName() const { return Encode(0, 7); }
  // For sorting by order.
  EightWords ByOrder() const { return Encode(1, 0); }
  static NodeReference FromByName(const EightWords& words) { return Decode(words, 0, 7); }
  static NodeReference FromByOrder(const EightWords& words) { return Decode(words, 1, 0); }

 private:
  // `at`: the word from which on all fields but the order lie.
  EightWords Encode(size_t at, size_t order_at) const {
    EightWords words{};
    auto* const bytes = reinterpret_cast<uint8_t*>(&words[at]);
    std::memcpy(bytes, child.name.bytes.data(), ChunkName::kSize);
    std::memcpy(bytes + ChunkName::kSize, &child.node_bytes, sizeof child.node_bytes);
    words[at + 3] = child.covered_bytes;
    words[at + 4] = child.chunk_count;
    words[at + 5] = child.hole_bytes;
    words[at + 6] = mark;
    words[order_at] = order;
    return words;
  }
  static NodeReference Decode(const EightWords& words, size_t at, size_t order_at) {
    NodeReference reference;
    RecipeChild& child = reference.child;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&words[at]);
    std::memcpy(child.name.bytes.data(), bytes, ChunkName::kSize);
    std::memcpy(&child.node_bytes, bytes + ChunkName::kSize, sizeof child.node_bytes);
    child.covered_bytes = words[at + 3];
    child.chunk_count = words[at + 4];
    child.hole_bytes = words[at + 5];
    reference.mark = words[at + 6];
    reference.order = words[order_at];
    return reference;
  }
};

}  // namespace

Result<std::unique_ptr<LevelWalk::NodeSorter>> LevelWalk::MakeSorter() {
  return NodeSorter::Create(env_, {.directory = options_.spill_directory,
                                   .memory_bytes = options_.memory_bytes,
                                   .minimum_free_bytes = options_.minimum_free_bytes,
                                   .unnamed_files = true});
}

Status LevelWalk::AddNode(const RecipeChild& child, uint8_t level, uint64_t mark) {
  SILTFS_RETURN_IF_ERROR(pacer_.Step());
  auto& sorter = levels_[level];
  if (sorter == nullptr) {
    SILTFS_ASSIGN_OR_RETURN(sorter, MakeSorter());
  }
  return sorter->Add(NodeReference{child, mark, next_order_++}.ByName());
}

Status LevelWalk::AddItems(uint8_t level, const std::vector<RecipeEntry>& entries,
                           const std::vector<RecipeChild>& children, uint64_t mark) {
  for (const RecipeEntry& entry : entries) {
    if (entry.is_hole()) continue;
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    SILTFS_RETURN_IF_ERROR(options_.visit(entry.name, entry.length, mark));
  }
  for (const RecipeChild& child : children)
    SILTFS_RETURN_IF_ERROR(AddNode(child, static_cast<uint8_t>(level - 1), mark));
  return Status::Ok();
}

Status LevelWalk::Finish() {
  for (size_t level = levels_.size(); level-- > 0;)
    SILTFS_RETURN_IF_ERROR(ReadLevel(static_cast<uint8_t>(level)));
  return Status::Ok();
}

// Reads the nodes of a level, and adds the references in them. All references to these nodes must
// have been added.
Status LevelWalk::ReadLevel(uint8_t level) {
  if (levels_[level] == nullptr) return Status::Ok();
  uint64_t total = 0;
  SILTFS_ASSIGN_OR_RETURN(const auto nodes, Unite(*levels_[level], total));
  spilled_bytes_ += levels_[level]->spilled_bytes();
  levels_[level].reset();
  SILTFS_RETURN_IF_ERROR(nodes->Sort());
  for (uint64_t done = 1; !nodes->AtEnd(); ++done) {
    const NodeReference node = NodeReference::FromByOrder(nodes->record());
    SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kNodeWork));
    SILTFS_RETURN_IF_ERROR(options_.visit_node(node.child.name, node.child.node_bytes, node.mark));
    SILTFS_ASSIGN_OR_RETURN(const RecipeNode read, ReadNode(nodes_, node.child, level));
    SILTFS_RETURN_IF_ERROR(AddItems(level, read.entries, read.children, node.mark));
    ++nodes_read_;
    if (options_.on_node) SILTFS_RETURN_IF_ERROR(options_.on_node(done, total));
    SILTFS_RETURN_IF_ERROR(nodes->Next());
  }
  spilled_bytes_ += nodes->spilled_bytes();
  return Status::Ok();
}

Result<std::unique_ptr<LevelWalk::NodeSorter>> LevelWalk::Unite(NodeSorter& references,
                                                                uint64_t& count) {
  SILTFS_ASSIGN_OR_RETURN(auto nodes, MakeSorter());
  SILTFS_RETURN_IF_ERROR(references.Sort());
  while (!references.AtEnd()) {
    NodeReference node = NodeReference::FromByName(references.record());
    SILTFS_RETURN_IF_ERROR(references.Next());
    while (!references.AtEnd()) {
      const NodeReference other = NodeReference::FromByName(references.record());
      if (other.child.name != node.child.name) break;
      SILTFS_RETURN_IF_ERROR(pacer_.Step());
      if (!options_.unite(node.child, node.mark, other.mark)) {
        SILTFS_RETURN_IF_ERROR(nodes->Add(node.ByOrder()));
        ++count;
        node.mark = other.mark;  // keeps the order, so the node is soon read again
      } else {
        node.order = std::min(node.order, other.order);
      }
      SILTFS_RETURN_IF_ERROR(references.Next());
    }
    SILTFS_RETURN_IF_ERROR(nodes->Add(node.ByOrder()));
    ++count;
  }
  return nodes;
}

}  // namespace siltfs
