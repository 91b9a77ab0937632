// Reading recipes: by offset and in order (RecipeReader), or all of the tree, for statistics, check
// and GC (WalkRecipe).
//
// Errors: what NodeStore::GetNode answers; kCorruption, with the node's name, for a node that is
// not what its parent says. Not thread-safe; the NodeStore must outlive the reader, the recipe is
// copied.
#pragma once

#include <cstdint>
#include <functional>

#include "fs/meta/recipe.h"
#include "fs/meta/recipe_cursor.h"
#include "fs/meta/recipe_node.h"
#include "store/base/status.h"

namespace siltfs {

// Walks the entries in order. Holds one decoded node a level; an ordered walk, or a Seek near by,
// reads no node twice.
class RecipeReader {
 public:
  // Not Valid() until Seek.
  RecipeReader(NodeStore& nodes, const Recipe& recipe) : cursor_(nodes, recipe) {}

  // To the entry that holds byte `offset` of the file; not Valid() if that is at the end or beyond.
  void Seek(uint64_t offset);
  void Next();

  bool Valid() const { return valid_; }
  const RecipeEntry& entry() const { return cursor_.entry(); }  // only where Valid()
  uint64_t entry_offset() const { return cursor_.offset(); }    // of the entry's first byte

  // Not OK: a node could not be read. The bytes [failed_begin(), failed_end()) of the file lie
  // under it, and Seek(failed_end()) goes on behind them.
  const Status& status() const { return status_; }
  uint64_t failed_begin() const { return cursor_.offset(); }
  uint64_t failed_end() const { return cursor_.offset() + cursor_.item_bytes(); }

 private:
  void Settle(Status outcome);

  RecipeCursor cursor_;
  Status status_;
  bool valid_ = false;
};

// What WalkRecipe calls; any of them may be empty. `offset` is in the file.
struct RecipeVisitor {
  // Before the node, of level `level`, is read. False: neither it nor what is under it is walked.
  std::function<bool(const RecipeChild& node, uint8_t level, uint64_t offset)> node;
  // Each entry, in order. Without it leaves are not read. Failure ends the walk.
  std::function<Status(const RecipeEntry& entry, uint64_t offset)> entry;
  // The node could not be read. OK goes on behind it, failure ends the walk; without it `why` ends
  // the walk.
  std::function<Status(const RecipeChild& node, uint8_t level, uint64_t offset, Status why)>
      damaged;
};

// Visits the whole tree in order, parents first.
Status WalkRecipe(NodeStore& nodes, const Recipe& recipe, const RecipeVisitor& visitor);

// Every node of the tree; `visit` prunes by answering false. Leaves are not read.
Status ForEachNode(NodeStore& nodes, const Recipe& recipe,
                   const std::function<bool(const RecipeChild& node, uint8_t level)>& visit);

// The first place in [begin, end) that is in a hole, or that is in none; `end` if there is no such
// place. Reads no nodes that lie in holes or in none as a whole.
Result<uint64_t> FindHole(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end);
Result<uint64_t> FindData(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end);

// Every chunk of file content in order, repeated ones each time; holes are passed over.
Status ForEachChunk(
    NodeStore& nodes, const Recipe& recipe,
    const std::function<Status(const ChunkName& name, uint64_t length, uint64_t offset)>& visit);

}  // namespace siltfs
