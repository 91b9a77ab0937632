// Makes one recipe of a file's recipe and overlay.
//
// Only what changed is cut again: from the start of the chunk before a change until the cut points
// fall in step with the chunks that are there. Where a chunk ends depends on its own bytes alone
// (chunker.h), so any chunk that was cut by its content may stand after any other; chunks that
// ended because a hole or the end of the file followed are cut again when that has changed. Holes
// are barriers: no chunk reaches across one, and all-zero chunks become holes.
#pragma once

#include "chunker/chunker.h"
#include "fs/core/file_content.h"
#include "fs/core/overlay.h"
#include "fs/dedup/chunk_store.h"
#include "fs/meta/inode_record.h"

namespace siltfs {

// The recipe of the file's first `end` bytes; end <= record.size. Of what the overlay holds at
// least that within `window` is in it; where the rest lies it may be what was there before. What
// lies behind record.recipe_limit and before `end` is always in it. New chunks and nodes are put;
// nothing else changes.
Result<Recipe> FoldToRecipe(ChunkStore& chunks, const ChunkerTables& tables,
                            const FileContent& content, const InodeRecord& record,
                            const Overlay& overlay, Overlay::Range window, uint64_t end);

}  // namespace siltfs
