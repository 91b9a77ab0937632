// The chunks that must stay whole, because a delta depends on them: a set of chunk names that also
// has some other names: fewer than one in 1,000 for each filter of the chain below, and fewer than
// one in 100 when it is full. A chunk that is in the set by mistake is stored whole, which
// costs a little space.
//
// It is a chain of Bloom filters (Bloom, 1970), each twice as large as the one before, so the set
// grows without knowing how many names come. Names are never removed.
//
// Thread-safety: none. Memory: 2 to 4 bytes for each name; 8 KiB at least, once there is one; 16
// MiB at most. The set is full with 8 million names.
#pragma once

#include <cstdint>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "store/base/chunk_name.h"

namespace siltfs {

class BaseNames {
 public:
  static constexpr size_t kMostParts = 11;

  // If the set is full, the last filter gets more names than it is made for, and answers yes more
  // often.
  void Add(const ChunkName& name);
  bool full() const { return parts_.size() == kMostParts && parts_.back().room == 0; }
  bool MayHave(const ChunkName& name) const;
  uint64_t memory_bytes() const;

 private:
  struct Part {
    BloomFilter filter;
    uint64_t room = 0;  // names that can still be added
  };
  std::vector<Part> parts_;
};

}  // namespace siltfs
