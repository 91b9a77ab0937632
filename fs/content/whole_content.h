// Turns the contents of whole small files into recipes, without an overlay. The recipes are those
// that a write and a fold would have made.
//
// Not thread-safe: one object per call of an operation. The caller holds a ChunkStore::Use from Cut
// until the recipes are applied. Errors: those of ChunkStore::Put; kInvalidArgument for extents
// that overlap, touch, are empty, are out of order, or lie beyond the size. Durability: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chunker/chunker.h"
#include "fs/chunks/chunk_store.h"
#include "fs/recipe/recipe.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

class WholeContent {
 public:
  struct Extent {
    uint64_t offset = 0;
    ByteView bytes;
  };

  WholeContent(ChunkStore& chunks, const ChunkerTables& tables)
      : chunks_(chunks), tables_(tables) {}

  // Cuts a file of this size. What lies between the extents is a hole. The bytes must stay
  // unchanged until Put. A refused file leaves nothing behind.
  Status Cut(uint64_t size, std::span<const Extent> extents);
  // Puts the chunks of all files that were cut.
  Status Put();
  // The recipe of the file that was cut as number `file`, counted from 0. Call it after Put.
  Result<Recipe> RecipeOf(size_t file);

 private:
  struct Piece {
    uint64_t length = 0;
    bool hole = false;
  };

  void CutExtent(ByteView bytes);
  void AddHole(uint64_t length);

  ChunkStore& chunks_;
  const ChunkerTables& tables_;
  std::vector<Piece> pieces_;     // of all files
  std::vector<ByteView> to_put_;  // the chunks among them
  std::vector<ChunkName> names_;  // of to_put_
  struct File {
    size_t first_piece = 0;
    size_t first_chunk = 0;
  };
  std::vector<File> files_;
};

}  // namespace siltfs
