// The slot of every file of an index on flash, and the hash and order of names. Slots lie in pages
// of 4 KiB, the unit of every read. An index has slots of one of two kinds, chosen when the index
// is made:
//
// - A chunk index has *hashed slots* of 20 bytes: the hash of the name and the location. The name
//   itself is not stored, because an entry is a hint that the caller confirms in the segment. If
//   two names have the same hash, the entry that was put last counts for both. Each page begins
//   with a header that has its checksum and its number (page_header.h).
// - A key-value store has *named slots* of 2^bits bytes: the name, the location, and the first part
//   of key and value in the further bytes (SILT, section 4, "Variable-Length Key-Values").
//
// Functions and plain values only, safe to call from any thread.
#pragma once

#include <algorithm>
#include <cassert>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "index/chunk_index.h"
#include "store/base/checksum.h"

namespace siltfs {

inline constexpr unsigned kPageBits = 12;
inline constexpr size_t kPageSize = size_t{1} << kPageBits;
inline constexpr size_t kHashSize = sizeof(uint64_t);
inline constexpr size_t kHashedSlotSize = kHashSize + Location::kEncodedSize;
static_assert(kHashedSlotSize == 20);
// Size of the name and location in a named slot.
inline constexpr size_t kNamedEntrySize = ChunkName::kSize + Location::kEncodedSize;
static_assert(kNamedEntrySize == 32);
// Header of a page with hashed slots.
inline constexpr size_t kPageHeaderSize = 16;

// The kind and size of an index's slots.
class SlotLayout {
 public:
  // Named slots have 2^bits bytes.
  static constexpr unsigned kLeastBits = 5;
  static constexpr unsigned kMostBits = 11;

  static constexpr SlotLayout Hashed() { return SlotLayout(); }
  // kLeastBits <= bits <= kMostBits.
  static constexpr SlotLayout Named(unsigned bits) { return SlotLayout(bits); }
  constexpr SlotLayout() = default;  // hashed

  // The number of the layout in manifests and footers: 0 for hashed slots.
  static constexpr uint8_t kMostNumber = kMostBits - kLeastBits + 1;
  constexpr uint8_t number() const {
    return hashed() ? 0 : static_cast<uint8_t>(bits_ - kLeastBits + 1);
  }
  // number <= kMostNumber.
  static constexpr SlotLayout OfNumber(uint8_t number) {
    return number == 0 ? Hashed() : Named(number - 1 + kLeastBits);
  }

  constexpr bool hashed() const { return bits_ == 0; }
  constexpr unsigned bits() const { return bits_; }  // of named slots
  constexpr size_t header_size() const { return hashed() ? kPageHeaderSize : 0; }
  constexpr size_t slot_size() const { return hashed() ? kHashedSlotSize : size_t{1} << bits_; }
  constexpr size_t rest_size() const { return hashed() ? 0 : slot_size() - kNamedEntrySize; }
  constexpr size_t slots_per_page() const {
    return hashed() ? kHashedSlotsPerPage : kPageSize >> bits_;
  }
  // Page, and index in the page, of a slot in a file of pages.
  constexpr uint32_t PageOf(uint64_t slot) const {
    return static_cast<uint32_t>(hashed() ? slot / kHashedSlotsPerPage
                                          : slot >> (kPageBits - bits_));
  }
  constexpr size_t IndexOf(uint64_t slot) const {
    return hashed() ? slot % kHashedSlotsPerPage : slot & (slots_per_page() - 1);
  }
  constexpr uint64_t PagesFor(uint64_t slots) const {
    return (slots + slots_per_page() - 1) / slots_per_page();
  }
  constexpr size_t OffsetInPage(size_t index) const { return header_size() + index * slot_size(); }

  friend bool operator==(const SlotLayout&, const SlotLayout&) = default;

 private:
  constexpr explicit SlotLayout(unsigned bits) : bits_(bits) {}
  static constexpr size_t kHashedSlotsPerPage = (kPageSize - kPageHeaderSize) / kHashedSlotSize;
  unsigned bits_ = 0;  // 0: hashed
};

// The slots of a chunk index: 51 buckets of a cuckoo table fill a page exactly.
inline constexpr SlotLayout kChunkSlots = SlotLayout::Hashed();
static_assert(kChunkSlots.slots_per_page() == 204 && kChunkSlots.OffsetInPage(204) == kPageSize);
// The maximum over all layouts.
inline constexpr size_t kMostSlotsPerPage = kChunkSlots.slots_per_page();

// A slot's contents. A hashed slot has a hash and no name; a named slot has a name, and `hash` is
// 0. `rest` is the bytes after name and location. If a writer passes fewer bytes than fit, zeros
// fill the slot. A reader gets all bytes up to the end of the slot, as a view into the page. The
// view is valid as long as the page's owner keeps the page.
struct SlotEntry : IndexEntry {
  SlotEntry() = default;
  SlotEntry(const IndexEntry& entry, ByteView bytes = {}) : IndexEntry(entry), rest(bytes) {}
  uint64_t hash = 0;
  ByteView rest;
};

using PageBytes = std::span<uint8_t, kPageSize>;
using ConstPageBytes = std::span<const uint8_t, kPageSize>;

inline void EncodeHash(std::span<uint8_t, kHashSize> out, uint64_t hash) {
  for (size_t i = 0; i < kHashSize; ++i) out[i] = static_cast<uint8_t>(hash >> (8 * i));
}
inline uint64_t DecodeHash(std::span<const uint8_t, kHashSize> in) {
  uint64_t hash = 0;
  for (size_t i = 0; i < kHashSize; ++i) hash |= static_cast<uint64_t>(in[i]) << (8 * i);
  return hash;
}

// slot.size() must be the slot size of a layout. A hashed slot gets `entry.hash`, a named slot gets
// `entry.name`. Merges spend most of their time in these two functions, so they are inline, and
// EncodeSlot returns early if a slot has no rest.
inline void EncodeSlot(MutableByteView slot, const SlotEntry& entry) {
  if (slot.size() == kHashedSlotSize) {
    EncodeHash(slot.subspan<0, kHashSize>(), entry.hash);
    entry.location.EncodeTo(slot.subspan<kHashSize, Location::kEncodedSize>());
    return;
  }
  std::memcpy(slot.data(), entry.name.bytes.data(), ChunkName::kSize);
  entry.location.EncodeTo(slot.subspan<ChunkName::kSize, Location::kEncodedSize>());
  assert(entry.rest.size() <= slot.size() - kNamedEntrySize);
  if (slot.size() == kNamedEntrySize) return;
  const auto end = std::copy(entry.rest.begin(), entry.rest.end(), slot.begin() + kNamedEntrySize);
  std::fill(end, slot.end(), 0);
}
inline SlotEntry DecodeSlot(ByteView slot) {
  SlotEntry entry;
  if (slot.size() == kHashedSlotSize) {
    entry.hash = DecodeHash(slot.subspan<0, kHashSize>());
    entry.location = Location::Decode(slot.subspan<kHashSize, Location::kEncodedSize>());
    return entry;
  }
  std::memcpy(entry.name.bytes.data(), slot.data(), ChunkName::kSize);
  entry.location = Location::Decode(slot.subspan<ChunkName::kSize, Location::kEncodedSize>());
  entry.rest = slot.subspan(kNamedEntrySize);
  return entry;
}

inline MutableByteView SlotOfPage(const SlotLayout& layout, PageBytes page, size_t index) {
  return page.subspan(layout.OffsetInPage(index), layout.slot_size());
}
inline ByteView SlotOfPage(const SlotLayout& layout, ConstPageBytes page, size_t index) {
  return page.subspan(layout.OffsetInPage(index), layout.slot_size());
}

// Returns whether the entry is a tombstone, whose location names no segment. A slot of zeros counts
// as a tombstone, too; such slots fill the end of a partly used page.
inline bool IsTombstone(const IndexEntry& entry) { return entry.location.segment == kNoSegment; }
// Returns whether the entry comes from a slot of zeros. No name is all zeros, and no hash is 0.
inline bool IsHole(const SlotEntry& entry) { return entry.hash == 0 && entry.name == ChunkName{}; }

// The order of sorted files. The key of a hashed slot has no name.
struct OrderKey {
  uint64_t hash = 0;
  ChunkName name;
  auto operator<=>(const OrderKey&) const = default;
};

// The hash by which an index finds a name: its top bits choose the partition, its low ones the
// buckets of the cuckoo tables, and sorted files are ordered by it. (SILT's paper uses the key
// itself, since its keys are hashes. Names here are hashes, too, but an attacker can search for
// chunks with chosen names. If the buckets were predictable, a table would refuse the 17th of the
// chunks that share two buckets. Chosen chunks could also all fall into one partition or one deep
// branch of a trie, or share the hash that a hashed slot keeps. A fast keyed hash is enough,
// because the names are SHA-1 hashes: an attacker can find names with chosen bytes only by trying
// many chunks.)
struct NameHash {
  static constexpr unsigned kAllBits = 64;
  static constexpr unsigned kLeastBits = 8;

  uint64_t secret = 0;
  // How many bits of the hash distinguish names. Tests use fewer bits than 64, so that many names
  // have the same hash.
  unsigned bits = kAllBits;

  // Never 0.
  uint64_t Of(const ChunkName& name) const {
    const uint64_t hash = Checksum(name.view(), secret);
    return std::max<uint64_t>(1, bits == kAllBits ? hash : Spread(hash >> (kAllBits - bits)));
  }
  // The key of a decoded slot that is not a hole.
  OrderKey KeyOf(const SlotEntry& entry) const {
    return entry.hash != 0 ? OrderKey{entry.hash, {}} : OrderKey{Of(entry.name), entry.name};
  }
  // The key under which an index with this layout finds a name.
  OrderKey KeyOf(const SlotLayout& layout, const ChunkName& name) const {
    return {Of(name), layout.hashed() ? ChunkName{} : name};
  }

  friend bool operator==(const NameHash&, const NameHash&) = default;

 private:
  static uint64_t Spread(uint64_t value);
};

// Returns whether a decoded slot is an entry of this key.
inline bool IsEntryOf(const OrderKey& key, const SlotLayout& layout, const SlotEntry& entry) {
  return layout.hashed() ? entry.hash == key.hash : entry.name == key.name;
}

// Returns the entry of a key among the slots of a page, or nothing if it is absent.
std::optional<SlotEntry> FindInPage(const SlotLayout& layout, const OrderKey& key,
                                    ConstPageBytes page);

inline constexpr unsigned kMaxPartitionBits = 12;

inline uint32_t PartitionOf(uint64_t hash, unsigned partition_bits) {
  return partition_bits == 0 ? 0 : static_cast<uint32_t>(hash >> (64 - partition_bits));
}

}  // namespace siltfs
