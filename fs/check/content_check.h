// Checks that every chunk to which a recipe or overlay refers is in a segment, under its name and
// with its length. This includes the recipes and overlays that only snapshots show.
//
// The index is asked first, in batches. Chunks that the index does not find, or of which it finds
// only a damaged copy, are collected. All segments are then searched for many of these chunks in
// one pass. So a store is checked down to its chunks even without an index, or with an index that
// lacks entries after a crash.
#pragma once

#include <vector>

#include "fs/check/base_finder.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"

namespace siltfs {

// Reports one finding per file and kind of damage, at the end.
Status CheckContents(CheckContext& context, ChunkFinder& finder, BaseFinder& bases);

}  // namespace siltfs
