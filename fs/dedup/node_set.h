// The names of recipe nodes that a mark has walked, so that none is walked twice: at 128 chunks a
// node, nearly a million of them for 100 million chunks.
//
// A set that takes one name for another loses all references under it. The first 64 bits of two
// names are made alike by 2^32 tries, which is an hour's work: so the set keeps whole names where
// its answers decide what is deleted. Twelve bytes will do where they decide what is looked at more
// closely: 2^48 tries for one pair, and 4e-18 that any two of a million are alike by chance.
//
// Thread-safety: one thread. Memory: name_bytes - 1 for a name by an occupancy of 70 to 87 %, in
// pages of its own; it grows part by part, so that hardly more is taken while it does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "store/base/chunk_name.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class NodeSet {
 public:
  static constexpr size_t kWholeNames = ChunkName::kSize;
  static constexpr size_t kShortNames = 12;

  // How many bytes of a name, from its first, tell it from others: 8 to ChunkName::kSize.
  explicit NodeSet(size_t name_bytes) : slot_bytes_(name_bytes - 1) {}

  // False if it was there.
  bool Insert(const ChunkName& name);
  bool Contains(const ChunkName& name) const;
  size_t size() const { return size_; }

 private:
  // The names that begin with one byte. Slots hold the bytes behind it; one of zeros is free.
  struct Part {
    PageVector<uint8_t> slots;
    size_t capacity = 0;  // slots
    size_t used = 0;
    bool has_zeros = false;  // a name of zeros but for its first byte
  };

  // Where the rest of a name is, or the free slot where it should be.
  const uint8_t* Find(const Part& part, const uint8_t* rest) const;
  void Grow(Part& part) const;

  const size_t slot_bytes_;
  size_t size_ = 0;
  std::array<Part, 256> parts_;
};

}  // namespace siltfs
