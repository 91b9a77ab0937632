// The entries of a SliceLSH, and their place in a page.
//
// A key has 40 bits of the keyed hash of a super-feature. The pages of a slicetable divide the keys
// evenly: page i of n has the keys of which key * n / 2^40, rounded down, is i. So the pages of a
// slicetable with any number of pages come in the order of the keys, and slicetables are merged by
// reading each of them once.
//
// Functions and plain values only, safe to call from any thread. Format: docs/format.md,
// "SliceLSH".
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/flash/flash_page.h"
#include "index/slice_lsh/slice_lsh.h"
#include "store/base/bytes.h"

namespace siltfs {

inline constexpr unsigned kLshKeyBits = 40;
inline constexpr uint64_t kLshKeys = uint64_t{1} << kLshKeyBits;

struct LshEntry {
  uint64_t key = 0;  // below kLshKeys
  SliceLshPlace place;

  friend bool operator==(const LshEntry&, const LshEntry&) = default;
};

inline constexpr uint8_t kLshPage = 2;  // the kind of page; its count is the number of entries
inline constexpr size_t kLshEntrySize = 12;
inline constexpr uint32_t kLshEntriesPerPage = (kPageSize - kFlashPageHeaderSize) / kLshEntrySize;
static_assert(kLshEntriesPerPage == 340);

// The page of a key among `pages`, at most PageAddress::kMostPages.
inline uint32_t LshPageOf(uint64_t key, uint32_t pages) {
  return static_cast<uint32_t>(key * pages >> kLshKeyBits);
}
// The least key of page `page` of `pages`; kLshKeys for page == pages.
inline uint64_t LshFirstKey(uint32_t page, uint32_t pages) {
  return ((uint64_t{page} << kLshKeyBits) + pages - 1) / pages;
}
// How many pages have so many entries: they are 7/8 full, unless one page is enough. At least 1.
inline uint64_t LshPagesFor(uint64_t entries) {
  if (entries <= kLshEntriesPerPage) return 1;
  return (entries * 8 + kLshEntriesPerPage * 7 - 1) / (kLshEntriesPerPage * 7);
}

// i < kLshEntriesPerPage. The ordinal has at most 24 bits.
void WriteLshEntry(PageBytes page, size_t i, const LshEntry& entry);
LshEntry ReadLshEntry(ConstPageBytes page, size_t i);
// Of a page whose checksum was checked: its number of entries; nothing if it has another kind or
// more entries than it has room for.
std::optional<uint32_t> LshEntriesOf(ConstPageBytes page);

}  // namespace siltfs
