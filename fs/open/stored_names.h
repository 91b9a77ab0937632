// Finds the names of chunks by their locations, in the segments of a store that is not mounted. An
// index of hashed slots has no names, so commands that print its entries ask the segments.
//
// Thread-safety: none. Writes nothing; the caller holds the store's lock. Memory: 8 MiB of block
// heads, 4 MiB of block tables, 64 open files. Each name of a block that is not in memory costs a
// read.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/env/env.h"

namespace siltfs {

class SegmentStore;

class StoredNames {
 public:
  // `env` and `segments` must outlive the object. `segments`: as FileSystemOptions::segments.
  // Errors: those of ReadSuperblock.
  static Result<std::unique_ptr<StoredNames>> Open(Env& env, const std::string& store,
                                                   SegmentStore* segments = nullptr);
  ~StoredNames();
  StoredNames(const StoredNames&) = delete;
  StoredNames& operator=(const StoredNames&) = delete;

  // The name of the chunk at a location; the location's offset is only a hint. Empty if the segment
  // is missing, has no such chunk, or is damaged there. kIoError if it cannot be read.
  Result<std::optional<ChunkName>> NameAt(const Location& location);

 private:
  struct Parts;
  explicit StoredNames(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace siltfs
