// A file of a LocalCache. An inner part of local_cache.h.
//
// Guarded by the cache's mutex.
#pragma once

#include <cstdint>
#include <memory>

#include "store/bucket/block_set.h"
#include "store/bucket/local_cache.h"

namespace siltfs {

struct LocalCache::Unit {
  SegmentContent content;
  State state = State::kImage;
  bool is_listed = false;  // in probation_ or protected_
  bool is_protected = false;
  bool has_trailer = false;
  uint32_t fills = 0;  // running ones; the unit is not evicted meanwhile
  uint64_t bytes = 0;  // that are counted for it
  BlockSet intact;
  BlockSet unverified;
  BlockSet touched;            // read once since they came
  std::shared_ptr<File> file;  // null while it is closed
  Order::iterator place;       // if is_listed
  Order::iterator open_place;  // if `file`, and not detached
};

}  // namespace siltfs
