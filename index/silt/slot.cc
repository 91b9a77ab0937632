#include "index/silt/slot.h"

#include <algorithm>
#include <cstring>

namespace siltfs {

std::optional<SlotEntry> FindInPage(const SlotLayout& layout, const ChunkName& name,
                                    ConstPageBytes page) {
  for (size_t i = 0; i < layout.slots_per_page(); ++i) {
    const ByteView slot = SlotOfPage(layout, page, i);
    if (std::memcmp(slot.data(), name.bytes.data(), ChunkName::kSize) == 0) return DecodeSlot(slot);
  }
  return std::nullopt;
}

ChunkName TrieKeyOf(const OrderKey& key) {
  constexpr size_t kHashBytes = sizeof key.hash;
  ChunkName trie_key;
  for (size_t i = 0; i < kHashBytes; ++i) {
    trie_key.bytes[i] = static_cast<uint8_t>(key.hash >> (8 * (kHashBytes - 1 - i)));
  }
  std::copy_n(key.name.bytes.begin(), ChunkName::kSize - kHashBytes,
              trie_key.bytes.begin() + kHashBytes);
  return trie_key;
}

}  // namespace siltfs
