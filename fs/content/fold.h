// Merges a file's overlay into its recipe.
//
// Only changed parts are cut again: from the start of the chunk in which a change begins, until a
// new cut point coincides with the start of an existing chunk. A cut point depends only on the
// bytes of the chunk that it ends (chunker.h). So a chunk that ends at a cut point can be taken
// over, whatever bytes precede or follow it. But a chunk may also have ended at a hole or at the
// end of the file. Such a chunk is cut again if this hole or end has changed. No chunk extends
// across a hole, and all-zero chunks become holes.
#pragma once

#include "chunker/chunker.h"
#include "fs/chunks/chunk_store.h"
#include "fs/content/file_content.h"
#include "fs/content/overlay.h"
#include "fs/records/inode_record.h"

namespace siltfs {

// Returns the recipe of the file's first `end` bytes; end <= record.size. The recipe includes the
// overlay's extents within `window`, and all content between record.recipe_limit and `end`.
// Elsewhere the recipe may still have the old content. Puts new chunks and nodes, and changes
// nothing else.
Result<Recipe> FoldToRecipe(ChunkStore& chunks, const ChunkerTables& tables,
                            const FileContent& content, const InodeRecord& record,
                            const Overlay& overlay, Overlay::Range window, uint64_t end);

}  // namespace siltfs
