// The index of a SortedStore's pages, in memory: either page boundaries (page_bounds.h) or the trie
// of SILT's section 3.3 (trie_index.h). Boundaries take a fifth of the trie's memory, so they
// stay in memory whatever its limit is; they need hashed slots.
//
// Thread-safety: immutable, so safe to share between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "index/flash/page_bounds.h"
#include "index/flash/page_index_kind.h"
#include "index/flash/slot.h"
#include "index/silt/trie_index.h"

namespace siltfs {

// An OrderKey as a string of bits with the same order, for a trie: the hash and as much of the name
// as fits. Two named keys share a trie key only if the keyed hash and 96 bits of SHA-1 collide at
// once.
ChunkName TrieKeyOf(const OrderKey& key);

class PageIndex {
 public:
  explicit PageIndex(TrieIndex trie) : index_(std::move(trie)) {}
  explicit PageIndex(PageBounds bounds) : index_(std::move(bounds)) {}

  // What a SortedStore's index must agree with.
  struct Shape {
    unsigned partition_bits = 0;
    uint64_t entries = 0;
    uint32_t pages = 0;
    SlotLayout layout;
  };
  // Reads what Encode wrote. kCorruption for other bytes, and for the index of another store.
  static Result<PageIndex> Decode(PageIndexKind kind, const Shape& shape, ByteView bytes);
  void Encode(Encoder& out) const;

  // The pages that may have the key; more than one only if a bin of hashes exceeds a page.
  PageBounds::Range PagesOf(const OrderKey& key) const {
    if (const auto* bounds = std::get_if<PageBounds>(&index_)) return bounds->PagesOf(key.hash);
    const uint32_t page = std::get<TrieIndex>(index_).Lookup(TrieKeyOf(key));
    return {.first = page, .last = page};
  }
  size_t memory_bytes() const;

 private:
  std::variant<TrieIndex, PageBounds> index_;
};

}  // namespace siltfs
