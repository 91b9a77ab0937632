// The chunks that must stay whole, because a delta depends on them: a set of chunk names that also
// has some other names: fewer than one in 1,000 for each filter of the chain below, and fewer than
// one in 100 with 20 million names. A chunk that is in the set by mistake is stored whole, which
// costs a little space.
//
// It is a chain of Bloom filters (Bloom, 1970), each twice as large as the one before, so the set
// grows without knowing how many names come. Names are never removed.
//
// Thread-safety: none. Memory: 2 to 4 bytes for each name; 8 KiB at least, once there is one.
#pragma once

#include <cstdint>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "store/base/chunk_name.h"

namespace siltfs {

class BaseNames {
 public:
  void Add(const ChunkName& name);
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
