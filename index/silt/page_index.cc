#include "index/silt/page_index.h"

#include <algorithm>
#include <utility>

namespace siltfs {

ChunkName TrieKeyOf(const OrderKey& key) {
  ChunkName trie_key;
  for (size_t i = 0; i < kHashSize; ++i) {
    trie_key.bytes[i] = static_cast<uint8_t>(key.hash >> (8 * (kHashSize - 1 - i)));
  }
  std::copy_n(key.name.bytes.begin(), ChunkName::kSize - kHashSize,
              trie_key.bytes.begin() + kHashSize);
  return trie_key;
}

Result<PageIndex> PageIndex::Decode(PageIndexKind kind, const Shape& shape, ByteView bytes) {
  if (kind == PageIndexKind::kBounds) {
    SILTFS_ASSIGN_OR_RETURN(PageBounds bounds, PageBounds::Decode(bytes));
    if (bounds.pages() != shape.pages || bounds.bins().skip_bits != shape.partition_bits) {
      return Status(StatusCode::kCorruption, "has page boundaries for other entries");
    }
    return PageIndex(std::move(bounds));
  }
  SILTFS_ASSIGN_OR_RETURN(TrieIndex trie, TrieIndex::Decode(bytes));
  if (trie.entries() != shape.entries || trie.options().skip_bits != shape.partition_bits ||
      trie.options().block_entries != shape.layout.slots_per_page() ||
      trie.blocks() != shape.pages) {
    return Status(StatusCode::kCorruption, "has a trie for other entries");
  }
  return PageIndex(std::move(trie));
}

void PageIndex::Encode(Encoder& out) const {
  std::visit([&](const auto& index) { index.Encode(out); }, index_);
}

size_t PageIndex::memory_bytes() const {
  return std::visit([](const auto& index) { return index.memory_bytes(); }, index_);
}

}  // namespace siltfs
