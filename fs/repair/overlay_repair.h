// A file's overlay put in order: extents that are malformed go, those that overlap or reach beyond
// the file's end are cut. And extents of which chunks are lost: those become holes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fs/meta/overlay_extent.h"
#include "fs/repair/metadata_edit.h"

namespace siltfs {

struct PlacedExtent {
  uint64_t offset = 0;  // in the file
  OverlayExtent extent;
};

// The part [begin, end) of an extent, counted from its own beginning; 0 <= begin < end <= length.
OverlayExtent PartOf(const OverlayExtent& extent, uint64_t begin, uint64_t end);

// The extent with holes in the place of the slices that are `lost`, as several if need be. Empty if
// none is.
std::vector<PlacedExtent> WithoutLost(const PlacedExtent& placed,
                                      const std::function<bool(const ChunkSlice&)>& lost);

// Collects the changes that put the overlay of a file of this size in order.
Status RepairOverlay(MetadataEdit& edit, uint64_t inode, uint64_t size);

// Removes all of it.
Status RemoveOverlay(MetadataEdit& edit, uint64_t inode);

}  // namespace siltfs
