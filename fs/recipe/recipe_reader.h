// Reads recipes: by offset and in order (RecipeReader), or the whole tree, for statistics, check
// and GC (WalkRecipe).
//
// Errors: those of NodeStore::GetNode; kCorruption, with the node's name, for a node that differs
// from its parent's reference. Not thread-safe; the NodeStore must outlive the reader, the recipe
// is copied.
#pragma once

#include <cstdint>
#include <functional>

#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_cursor.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/status.h"

namespace siltfs {

// Walks the entries in order. Holds one decoded node per level. Next and Seek do not read a node
// that is still held.
class RecipeReader {
 public:
  // The reader is not Valid() until Seek is called.
  RecipeReader(NodeStore& nodes, const Recipe& recipe) : cursor_(nodes, recipe) {}

  // Moves to the entry that holds byte `offset` of the file. At the end and beyond, the reader is
  // not Valid().
  void Seek(uint64_t offset);
  void Next();

  bool Valid() const { return valid_; }
  const RecipeEntry& entry() const { return cursor_.entry(); }  // only if Valid()
  uint64_t entry_offset() const { return cursor_.offset(); }    // of the entry's first byte

  // Not OK if a node could not be read. The node covers the bytes [failed_begin(), failed_end()) of
  // the file; Seek(failed_end()) continues after it.
  const Status& status() const { return status_; }
  uint64_t failed_begin() const { return cursor_.offset(); }
  uint64_t failed_end() const { return cursor_.offset() + cursor_.item_bytes(); }

 private:
  void Finish(Status outcome);

  RecipeCursor cursor_;
  Status status_;
  bool valid_ = false;
};

// The callbacks of WalkRecipe; each may be empty. `offset` is in the file.
struct RecipeVisitor {
  // Called before a node of level `level` is read. If it returns false, the node and its subtree
  // are skipped.
  std::function<bool(const RecipeChild& node, uint8_t level, uint64_t offset)> node;
  // Called for each entry, in order; a failure ends the walk. Without this callback, leaves are not
  // read.
  std::function<Status(const RecipeEntry& entry, uint64_t offset)> entry;
  // Called for an unreadable node. If it returns OK, the walk continues after the node; a failure
  // ends the walk. Without this callback, `why` ends the walk.
  std::function<Status(const RecipeChild& node, uint8_t level, uint64_t offset, Status why)>
      damaged;
};

// Visits the whole tree in order, parents first.
Status WalkRecipe(NodeStore& nodes, const Recipe& recipe, const RecipeVisitor& visitor);

// Visits every node of the tree; `visit` skips a subtree by returning false. Leaves are not read.
Status ForEachNode(NodeStore& nodes, const Recipe& recipe,
                   const std::function<bool(const RecipeChild& node, uint8_t level)>& visit);

// FindHole returns the first offset in [begin, end) inside a hole, FindData the first one outside
// holes. Both return `end` if there is none. Nodes that cover only holes or only data are not read.
Result<uint64_t> FindHole(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end);
Result<uint64_t> FindData(NodeStore& nodes, const Recipe& recipe, uint64_t begin, uint64_t end);

// Visits every chunk of file content in order; skips holes. A repeated chunk is visited each time.
Status ForEachChunk(
    NodeStore& nodes, const Recipe& recipe,
    const std::function<Status(const ChunkName& name, uint64_t length, uint64_t offset)>& visit);

}  // namespace siltfs
