// The slot of every SILT file: a name, its location and a fixed number of further bytes. This
// number is chosen when the index is made. Slots lie in pages of 4 KiB, the unit of every read.
// This file also defines the hash of names and the sort orders of the stores.
//
// A chunk index has slots of 32 bytes, with nothing after name and location. A key-value store
// keeps the first part of key and value in the further bytes (SILT, section 4, "Variable-Length
// Key-Values").
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
// Size of a slot's name and location.
inline constexpr size_t kEntrySize = ChunkName::kSize + Location::kEncodedSize;
static_assert(kEntrySize == 32);

// Slot size of an index: 2^bits bytes, so that slots fill a page.
class SlotLayout {
 public:
  static constexpr unsigned kLeastBits = 5;
  static constexpr unsigned kMostBits = 11;

  // kLeastBits <= bits <= kMostBits.
  constexpr explicit SlotLayout(unsigned bits) : bits_(bits) {}
  constexpr SlotLayout() = default;  // of a chunk index

  constexpr unsigned bits() const { return bits_; }
  constexpr size_t slot_size() const { return size_t{1} << bits_; }
  constexpr size_t rest_size() const { return slot_size() - kEntrySize; }
  constexpr size_t slots_per_page() const { return kPageSize >> bits_; }
  // Page, and index in the page, of a slot in a file of pages.
  constexpr uint32_t PageOf(uint64_t slot) const {
    return static_cast<uint32_t>(slot >> (kPageBits - bits_));
  }
  constexpr size_t IndexOf(uint64_t slot) const { return slot & (slots_per_page() - 1); }
  constexpr uint64_t PagesFor(uint64_t slots) const {
    return (slots + slots_per_page() - 1) / slots_per_page();
  }

  friend bool operator==(const SlotLayout&, const SlotLayout&) = default;

 private:
  unsigned bits_ = kLeastBits;
};

// The slots of a chunk index.
inline constexpr SlotLayout kChunkSlots;
static_assert(kChunkSlots.slot_size() == 32 && kChunkSlots.slots_per_page() == 128);
// The maximum over all layouts.
inline constexpr size_t kMostSlotsPerPage = kPageSize / kEntrySize;

// A slot's contents. `rest` is the bytes after name and location. If a writer passes fewer bytes
// than fit, zeros fill the slot. A reader gets all bytes up to the end of the slot, as a view into
// the page. The view is valid as long as the page's owner keeps the page.
struct SlotEntry : IndexEntry {
  SlotEntry() = default;
  SlotEntry(const IndexEntry& entry, ByteView bytes = {}) : IndexEntry(entry), rest(bytes) {}
  ByteView rest;
};

using PageBytes = std::span<uint8_t, kPageSize>;
using ConstPageBytes = std::span<const uint8_t, kPageSize>;

// slot.size() must be the slot size of a layout. Merges spend most of their time in these two
// functions, so they are inline, and EncodeSlot returns early if a slot has no rest.
inline void EncodeSlot(MutableByteView slot, const SlotEntry& entry) {
  std::memcpy(slot.data(), entry.name.bytes.data(), ChunkName::kSize);
  entry.location.EncodeTo(slot.subspan<ChunkName::kSize, Location::kEncodedSize>());
  assert(entry.rest.size() <= slot.size() - kEntrySize);
  if (slot.size() == kEntrySize) return;
  const auto end = std::copy(entry.rest.begin(), entry.rest.end(), slot.begin() + kEntrySize);
  std::fill(end, slot.end(), 0);
}
inline SlotEntry DecodeSlot(ByteView slot) {
  SlotEntry entry;
  std::memcpy(entry.name.bytes.data(), slot.data(), ChunkName::kSize);
  entry.location = Location::Decode(slot.subspan<ChunkName::kSize, Location::kEncodedSize>());
  entry.rest = slot.subspan(kEntrySize);
  return entry;
}

inline MutableByteView SlotOfPage(const SlotLayout& layout, PageBytes page, size_t index) {
  return page.subspan(index * layout.slot_size(), layout.slot_size());
}
inline ByteView SlotOfPage(const SlotLayout& layout, ConstPageBytes page, size_t index) {
  return page.subspan(index * layout.slot_size(), layout.slot_size());
}

// Returns the entry of a name among the slots of a page, or nothing if it is absent.
std::optional<SlotEntry> FindInPage(const SlotLayout& layout, const ChunkName& name,
                                    ConstPageBytes page);

// Returns whether the entry is a tombstone, whose location names no segment. A slot of zeros counts
// as a tombstone, too; such slots fill the end of a partly used page. No name is all zeros.
inline bool IsTombstone(const IndexEntry& entry) { return entry.location.segment == kNoSegment; }

// The hash by which an index finds a name: its top bits choose the partition, its low ones the
// buckets of the cuckoo tables, and SortedStores are ordered by it. (The paper uses the key itself,
// since its keys are hashes. Names here are hashes, too, but an attacker can search for chunks with
// chosen names. If the buckets were predictable, chunks that share two buckets would cause a
// LogStore to be frozen every 17 chunks. Chosen chunks could also all fall into one partition or
// one deep branch of a trie. A fast keyed hash is enough, because the names are SHA-1 hashes: an
// attacker can find names with chosen bytes only by trying many chunks.)
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

// An OrderKey as a string of bits with the same order, for a trie: the hash and as much of the name
// as fits. Two names share a trie key only if the keyed hash and 96 bits of SHA-1 collide at once.
ChunkName TrieKeyOf(const OrderKey& key);

}  // namespace siltfs
