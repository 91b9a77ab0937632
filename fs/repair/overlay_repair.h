// Repairs a file's overlay: removes malformed extents, cuts extents that overlap or exceed the
// file's size, and replaces lost chunks by holes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fs/records/overlay_extent.h"
#include "fs/repair/metadata_edit.h"

namespace siltfs {

struct PlacedExtent {
  uint64_t offset = 0;  // in the file
  OverlayExtent extent;
};

// The part [begin, end) of an extent, relative to its beginning; 0 <= begin < end <= length.
OverlayExtent PartOf(const OverlayExtent& extent, uint64_t begin, uint64_t end);

// Returns the extent, divided if necessary, with holes in place of the `lost` slices. Returns
// nothing if no slice is lost.
std::vector<PlacedExtent> WithoutLost(const PlacedExtent& placed,
                                      const std::function<bool(const ChunkSlice&)>& lost);

// Collects the changes that repair the overlay of a file of this size.
Status RepairOverlay(MetadataEdit& edit, uint64_t inode, uint64_t size);

// Removes the whole overlay.
Status RemoveOverlay(MetadataEdit& edit, uint64_t inode);

}  // namespace siltfs
