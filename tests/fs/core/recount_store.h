// Recounts a store's metadata, and requires that it is consistent: names with cookies, entry and
// link counts with names, overlays, attributes and orphans with inodes, and the store's counters
// with the sum of all files.
#pragma once

#include <cstdint>
#include <string>

namespace siltfs::testing {

struct StoreCount {
  uint64_t files = 0;  // inodes that are not directories, orphans included
  uint64_t directories = 0;
  uint64_t names = 0;
  uint64_t logical_bytes = 0;
  uint64_t chunk_references = 0;
  uint64_t orphans = 0;
  uint64_t overlay_extents = 0;
  uint64_t xattrs = 0;
  uint64_t last_commit = 0;
};

// The store must not be open; it may be closed or crashed. Reads it through a key-value store of
// its own, and writes nothing.
StoreCount RecountStore(const std::string& store);

}  // namespace siltfs::testing
