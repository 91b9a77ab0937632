// The names of the recipe nodes that a mark has walked, so that no node is walked twice. At 128
// chunks a node, 100 million chunks have nearly a million nodes.
//
// If the set confused two names, the mark would skip a node and lose all references under it. An
// attacker can make two names with equal first 64 bits in 2^32 tries, which takes about an hour. So
// the set keeps whole names if chunks are deleted because of the mark. Twelve bytes suffice for
// CountLive, which only decides what is examined more closely: one equal pair takes 2^48 tries. The
// probability that two of a million names have equal first twelve bytes by chance is below 1e-17.
//
// Thread-safety: one thread. Memory: slots of name_bytes - 1 bytes, in pages that hold nothing
// else. 70 to 87 % of the slots are in use. The set grows part by part, so growing takes hardly any
// extra memory.
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

  // Adds the name; false if the set already had it.
  bool Insert(const ChunkName& name);
  bool Contains(const ChunkName& name) const;
  size_t size() const { return size_; }

 private:
  // The names with the same first byte. A slot holds the other bytes of a name; an all-zero slot is
  // free.
  struct Part {
    PageVector<uint8_t> slots;
    size_t capacity = 0;  // slots
    size_t used = 0;
    bool has_zeros = false;  // there is a name whose other bytes are all zero
  };

  // Returns the slot that holds `rest` (a name without its first byte), or else the free slot for
  // it.
  const uint8_t* Find(const Part& part, const uint8_t* rest) const;
  void Grow(Part& part) const;

  const size_t slot_bytes_;
  size_t size_ = 0;
  std::array<Part, 256> parts_;
};

}  // namespace siltfs
