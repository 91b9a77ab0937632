// The walk through recipe trees for measurements: it passes something that is known of files, such
// as the snapshots that show them, down to all chunks in their recipes.
//
// Nodes are handled level by level, from the highest one down: the references to the nodes of a
// level are sorted by name and united. Then each node is read once, whatever number of files share
// it, and passes what its references say on to its items. Nodes are read in the order in which the
// walk has met them, so that the nodes of a file are read one after the other.
//
// Nodes are told apart by their whole names, because a confused node would hide everything below
// it.
//
// Thread-safety: one thread. Memory: twice `memory_bytes` of the options for the level that is
// being walked, and once for each level below it. Errors: those of nodes, sorting
// (reference_sorter.h), pacer and `visit`; kCorruption for a node that cannot be decoded.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"
#include "store/env/env.h"

namespace siltfs {

// `Payload` is what references say. It has
//   uint64_t Pack() const, static Payload Unpack(uint64_t): the whole of it
//   void Unite(const Payload&): adds what another reference to the same node says
template <typename Payload>
class NodeLevels {
 public:
  // A chunk of a recipe, or a node, which is stored as a chunk, too. Called once for each place of
  // a chunk in a distinct node or root, and once for each distinct node.
  enum class Kind : uint8_t { kChunk, kNode };
  using Visit =
      std::function<Status(const ChunkName& name, uint64_t length, Kind kind, const Payload&)>;

  // All must outlive it. `sorting` must have unnamed_files.
  NodeLevels(Env& env, ReferenceSorterOptions sorting, NodeStore& nodes, Pacer& pacer, Visit visit)
      : env_(env),
        sorting_(std::move(sorting)),
        nodes_(nodes),
        pacer_(pacer),
        visit_(std::move(visit)) {}

  // Adds a file's recipe.
  Status AddRecipe(const Recipe& recipe, const Payload& payload) {
    return AddItems(recipe.height, recipe.entries, recipe.children, payload);
  }

  // Walks the nodes of all recipes. Call it once, after the last AddRecipe.
  Status WalkNodes() {
    for (size_t level = levels_.size(); level-- > 0;)
      SILTFS_RETURN_IF_ERROR(WalkLevel(static_cast<uint8_t>(level)));
    return Status::Ok();
  }

  uint64_t nodes_read() const { return nodes_read_; }
  uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  using Sorter = RecordSorter<EightWords>;

  // A reference to a node.
  struct Reference {
    RecipeChild child;
    Payload payload;
    uint64_t order = 0;  // of the walk

    // For sorting by name: the name and the length of the node come first.
    EightWords ByName() const { return Encode(0, 7); }
    // For sorting by order.
    EightWords ByOrder() const { return Encode(1, 0); }
    static Reference FromByName(const EightWords& words) { return Decode(words, 0, 7); }
    static Reference FromByOrder(const EightWords& words) { return Decode(words, 1, 0); }

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
      words[at + 6] = payload.Pack();
      words[order_at] = order;
      return words;
    }
    static Reference Decode(const EightWords& words, size_t at, size_t order_at) {
      Reference reference;
      RecipeChild& child = reference.child;
      const auto* const bytes = reinterpret_cast<const uint8_t*>(&words[at]);
      std::memcpy(child.name.bytes.data(), bytes, ChunkName::kSize);
      std::memcpy(&child.node_bytes, bytes + ChunkName::kSize, sizeof child.node_bytes);
      child.covered_bytes = words[at + 3];
      child.chunk_count = words[at + 4];
      child.hole_bytes = words[at + 5];
      reference.payload = Payload::Unpack(words[at + 6]);
      reference.order = words[order_at];
      return reference;
    }
  };

  // The items of a root or a node. `level`: their own.
  Status AddItems(uint8_t level, const std::vector<RecipeEntry>& entries,
                  const std::vector<RecipeChild>& children, const Payload& payload) {
    for (const RecipeEntry& entry : entries) {
      if (!entry.is_hole())
        SILTFS_RETURN_IF_ERROR(visit_(entry.name, entry.length, Kind::kChunk, payload));
    }
    for (const RecipeChild& child : children)
      SILTFS_RETURN_IF_ERROR(AddNode(child, static_cast<uint8_t>(level - 1), payload));
    return Status::Ok();
  }

  // `level`: of the node.
  Status AddNode(const RecipeChild& child, uint8_t level, const Payload& payload) {
    SILTFS_RETURN_IF_ERROR(pacer_.Step());
    auto& sorter = levels_[level];
    if (sorter == nullptr) {
      SILTFS_ASSIGN_OR_RETURN(sorter, Sorter::Create(env_, sorting_));
    }
    return sorter->Add(Reference{child, payload, next_order_++}.ByName());
  }

  // Reads the nodes of a level, and adds the references in them. All references to these nodes must
  // have been added.
  Status WalkLevel(uint8_t level) {
    if (levels_[level] == nullptr) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const auto nodes, UniteNodes(*levels_[level]));
    spilled_bytes_ += levels_[level]->spilled_bytes();
    levels_[level].reset();
    SILTFS_RETURN_IF_ERROR(nodes->Sort());
    while (!nodes->AtEnd()) {
      const Reference node = Reference::FromByOrder(nodes->record());
      SILTFS_RETURN_IF_ERROR(pacer_.Step(Pacer::kNodeWork));
      SILTFS_RETURN_IF_ERROR(
          visit_(node.child.name, node.child.node_bytes, Kind::kNode, node.payload));
      SILTFS_ASSIGN_OR_RETURN(const RecipeNode read, ReadNode(nodes_, node.child, level));
      SILTFS_RETURN_IF_ERROR(AddItems(level, read.entries, read.children, node.payload));
      ++nodes_read_;
      SILTFS_RETURN_IF_ERROR(nodes->Next());
    }
    spilled_bytes_ += nodes->spilled_bytes();
    return Status::Ok();
  }

  // Returns each node once, with all that its references say, in the order of the walk.
  Result<std::unique_ptr<Sorter>> UniteNodes(Sorter& references) {
    SILTFS_ASSIGN_OR_RETURN(auto nodes, Sorter::Create(env_, sorting_));
    SILTFS_RETURN_IF_ERROR(references.Sort());
    while (!references.AtEnd()) {
      Reference node = Reference::FromByName(references.record());
      SILTFS_RETURN_IF_ERROR(references.Next());
      while (!references.AtEnd()) {
        const Reference other = Reference::FromByName(references.record());
        if (other.child.name != node.child.name) break;
        SILTFS_RETURN_IF_ERROR(pacer_.Step());
        node.payload.Unite(other.payload);
        node.order = std::min(node.order, other.order);
        SILTFS_RETURN_IF_ERROR(references.Next());
      }
      SILTFS_RETURN_IF_ERROR(nodes->Add(node.ByOrder()));
    }
    return nodes;
  }

  Env& env_;
  const ReferenceSorterOptions sorting_;
  NodeStore& nodes_;
  Pacer& pacer_;
  const Visit visit_;
  // The references to the nodes of each level; null without any.
  std::array<std::unique_ptr<Sorter>, Recipe::kMaxHeight> levels_;
  uint64_t next_order_ = 0;
  uint64_t nodes_read_ = 0;
  uint64_t spilled_bytes_ = 0;
};

}  // namespace siltfs
