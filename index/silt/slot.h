// The slot of every SILT file: 32 bytes, a name and its location; and the pages of 4 KiB that slots
// lie in, the unit of every read. Names, and the orders that the stores keep.
//
// Functions only, safe to call from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "index/chunk_index.h"
#include "store/base/checksum.h"

namespace siltfs {

inline constexpr size_t kPageSize = 4096;
inline constexpr size_t kSlotSize = ChunkName::kSize + Location::kEncodedSize;
inline constexpr size_t kSlotsPerPage = kPageSize / kSlotSize;
static_assert(kSlotSize == 32 && kSlotsPerPage == 128);

using PageBytes = std::span<uint8_t, kPageSize>;
using ConstPageBytes = std::span<const uint8_t, kPageSize>;

void EncodeSlot(std::span<uint8_t, kSlotSize> slot, const IndexEntry& entry);
IndexEntry DecodeSlot(std::span<const uint8_t, kSlotSize> slot);

inline std::span<uint8_t, kSlotSize> SlotOfPage(PageBytes page, size_t index) {
  return page.subspan(index * kSlotSize).first<kSlotSize>();
}
inline std::span<const uint8_t, kSlotSize> SlotOfPage(ConstPageBytes page, size_t index) {
  return page.subspan(index * kSlotSize).first<kSlotSize>();
}

// The entry of a name among the slots of a page; nothing if it has none.
std::optional<IndexEntry> FindInPage(const ChunkName& name, ConstPageBytes page);

// A deletion: an entry whose location names no segment. A slot of zeros, which no name has, is one
// too: what fills a page that is not full.
inline bool IsTombstone(const IndexEntry& entry) { return entry.location.segment == kNoSegment; }

// The hash by which an index finds a name: its top bits choose the partition, its low ones the
// buckets of the cuckoo tables, and SortedStores are ordered by it. (The paper takes the key itself
// for all that, keys being hashes. Names here are hashes too, but ones that can be ground: who
// knows the buckets could choose chunks that share two of them and have a LogStore frozen every 17
// chunks, or pile all chunks into one partition or one deep branch of a trie. SHA-1 leaves an
// attacker no choice of a name's bytes beyond grinding blindly, so a fast keyed hash does.)
inline uint64_t HashOf(const ChunkName& name, uint64_t secret) {
  return Checksum(name.view(), secret);
}

inline constexpr unsigned kMaxPartitionBits = 12;

inline uint32_t PartitionOf(uint64_t hash, unsigned partition_bits) {
  return partition_bits == 0 ? 0 : static_cast<uint32_t>(hash >> (64 - partition_bits));
}

// The order of SortedStores.
struct OrderKey {
  uint64_t hash = 0;
  ChunkName name;
  auto operator<=>(const OrderKey&) const = default;
};

// The same order as a string of bits, for a trie: the hash and as much of the name as fits. Two
// names with one such key would take a collision of the keyed hash and of 96 bits of SHA-1 at once.
ChunkName TrieKeyOf(const OrderKey& key);

}  // namespace siltfs
