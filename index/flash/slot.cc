#include "index/flash/slot.h"

#include <cstring>

namespace siltfs {

std::optional<SlotEntry> FindInPage(const SlotLayout& layout, const OrderKey& key,
                                    ConstPageBytes page) {
  for (size_t i = 0; i < layout.slots_per_page(); ++i) {
    const ByteView slot = SlotOfPage(layout, page, i);
    const bool found = layout.hashed()
                           ? DecodeHash(slot.subspan<0, kHashSize>()) == key.hash
                           : std::memcmp(slot.data(), key.name.bytes.data(), ChunkName::kSize) == 0;
    if (found) return DecodeSlot(slot);
  }
  return std::nullopt;
}

// The finalizer of SplitMix64, which maps different numbers to different numbers.
uint64_t NameHash::Spread(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

}  // namespace siltfs
