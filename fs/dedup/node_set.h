// The names of recipe nodes that a mark has walked, so that none is walked twice: at 128 chunks a
// node, nearly a million of them for 100 million chunks.
//
// A set that takes one name for another loses all references under it. Making the first 64 bits of
// two names equal takes 2^32 tries, which is an hour's work. So the set keeps whole names where its
// answers decide about deletion. Twelve bytes suffice where its answers decide what is examined
// more closely: one equal pair takes 2^48 tries, and any two of a million are equal by chance with
// 4e-18.
//
// Thread-safety: one thread. Memory: name_bytes - 1 for a name at an occupancy of 70 to 87 %, in
// pages of its own; it grows part by part, which takes hardly any memory meanwhile.
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

  // How many leading bytes of a name distinguish it: 8 to ChunkName::kSize.
  explicit NodeSet(size_t name_bytes) : slot_bytes_(name_bytes - 1) {}

  // False if it was there.
  bool Insert(const ChunkName& name);
  bool Contains(const ChunkName& name) const;
  size_t size() const { return size_; }

 private:
  // The names with one first byte. Slots hold the bytes behind it; an all-zero slot is free.
  struct Part {
    PageVector<uint8_t> slots;
    size_t capacity = 0;  // slots
    size_t used = 0;
    bool has_zeros = false;  // a name is all zero behind its first byte
  };

  // The slot of the rest of a name, or the free slot for it.
  const uint8_t* Find(const Part& part, const uint8_t* rest) const;
  void Grow(Part& part) const;

  const size_t slot_bytes_;
  size_t size_ = 0;
  std::array<Part, 256> parts_;
};

}  // namespace siltfs
