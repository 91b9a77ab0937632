// Visits the chunks of many recipes, and reads each distinct recipe node once, whatever number of
// recipes share it.
//
// Each recipe comes with a mark, 64 bits with a meaning of the caller's. A chunk is visited with
// the mark of each recipe that leads to it. If several recipes share a node, their marks are united
// before the node is read, so the chunks below it are visited with the united mark. Marks that the
// caller cannot unite stay apart, and then the node is read once for each of them.
//
// Nodes are handled level by level, from the highest one down: all references to the nodes of a
// level are sorted by name and united. Then the nodes are read in the order in which the walk has
// met them, so that the nodes of a file are read one after the other. Nodes are told apart by their
// whole names, because a confused node would hide everything below it.
//
// Not thread-safe. Ownership: the arguments must outlive it. Memory: `memory_bytes` for each level
// of nodes with references, and once more for the level that is being read. For each reference to a
// node, 128 bytes are sorted. Errors: those of nodes, sorting (reference_sorter.h), the functions
// and the pacer; kCorruption for a node that cannot be decoded.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/mark/reference_sorter.h"
#include "fs/mark/reference_walk.h"
#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

struct LevelWalkOptions {
  // As in ReferenceSorterOptions. The files have no names.
  std::string spill_directory;
  size_t memory_bytes = 2u << 20;
  uint64_t minimum_free_bytes = 0;
  // Unites the mark of a node with another one, which is not less than all others before. False if
  // the two stay apart; the next call is then about the other one.
  std::function<bool(const RecipeChild& node, uint64_t& mark, uint64_t other)> unite;
  // Called for each chunk, perhaps more than once with the same mark.
  std::function<Status(const ChunkName& name, uint64_t length, uint64_t mark)> visit;
  // The same for recipe nodes.
  std::function<Status(const ChunkName& name, uint64_t length, uint64_t mark)> visit_node;
  // Called after each node, with the number of nodes of its level that were read. May be empty.
  std::function<Status(uint64_t done, uint64_t total)> on_node = {};
};

class LevelWalk {
 public:
  LevelWalk(Env& env, NodeStore& nodes, LevelWalkOptions options, Pacer& pacer)
      : env_(env), nodes_(nodes), options_(std::move(options)), pacer_(pacer) {}

  // Visits the chunks in the recipe itself, and notes its nodes.
  Status Add(const Recipe& recipe, uint64_t mark) {
    return AddItems(recipe.height, recipe.entries, recipe.children, mark);
  }
  // Reads the nodes of all recipes and visits what is in them. Call it once, after the last Add.
  Status Finish();

  uint64_t nodes_read() const { return nodes_read_; }
  uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  using NodeSorter = RecordSorter<EightWords>;

  // `level`: of the items.
  Status AddItems(uint8_t level, const std::vector<RecipeEntry>& entries,
                  const std::vector<RecipeChild>& children, uint64_t mark);
  Status AddNode(const RecipeChild& child, uint8_t level, uint64_t mark);
  Status ReadLevel(uint8_t level);
  // Returns each node once for each united mark, with all that its references say, in the order of
  // the walk.
  Result<std::unique_ptr<NodeSorter>> Unite(NodeSorter& references, uint64_t& count);
  Result<std::unique_ptr<NodeSorter>> MakeSorter();

  Env& env_;
  NodeStore& nodes_;
  const LevelWalkOptions options_;
  Pacer& pacer_;
  // The references to the nodes of each level; null without any.
  std::array<std::unique_ptr<NodeSorter>, Recipe::kMaxHeight> levels_;
  uint64_t next_order_ = 0;
  uint64_t nodes_read_ = 0;
  uint64_t spilled_bytes_ = 0;
};

}  // namespace siltfs
