// The page of the engines that keep their index in page files (page_files.h): 4 KiB with a header
// and records. The header has a checksum, and the page's number in its file, so that a reader can
// tell that it has the page that was written at this place of this file.
// Format: docs/format.md, "Page files".
//
// Functions and plain values only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "index/flash/slot.h"
#include "store/base/bytes.h"
#include "store/base/location.h"

namespace siltfs {

// An entry as the engines keep it: the keyed hash of the name, and the location. A tombstone is an
// entry whose location names no segment. No hash is 0.
struct FlashEntry {
  uint64_t hash = 0;
  Location location;

  bool tombstone() const { return location.segment == kNoSegment; }
  friend bool operator==(const FlashEntry&, const FlashEntry&) = default;
};

struct FlashPageHeader {
  uint32_t number = 0;  // in its file
  uint8_t kind = 0;     // the engine's own
  uint16_t count = 0;   // the engine's own; mostly the number of records
};

inline constexpr size_t kFlashPageHeaderSize = 16;

// Writes header and checksum. `seed` distinguishes files (PageSeedOf).
void SealFlashPage(PageBytes page, const FlashPageHeader& header, uint64_t seed);
// Returns the header if the page is exactly as it was sealed with this number and seed.
std::optional<FlashPageHeader> CheckFlashPage(ConstPageBytes page, uint32_t number, uint64_t seed);
// Writes kind and count of a page that is sealed later (PageFiles::Append).
void SetPageKind(PageBytes page, uint8_t kind, uint16_t count);
// The kind and count of a page that was checked.
uint8_t PageKindOf(ConstPageBytes page);
uint16_t PageCountOf(ConstPageBytes page);

// The records of a page: a hash, a location, and further bytes that belong to the engine or are
// zero. The papers' records have 64 bytes (a name of 20 and a value of 44).
class RecordLayout {
 public:
  static constexpr size_t kEntrySize = kHashedSlotSize;  // 20
  static constexpr size_t kPaperSize = 64;

  // kEntrySize <= record_size <= kPaperSize. `reserved` bytes after the header belong to the
  // engine.
  constexpr explicit RecordLayout(size_t record_size = kEntrySize, size_t reserved = 0)
      : size_(record_size), first_(kFlashPageHeaderSize + reserved) {}

  constexpr size_t size() const { return size_; }
  constexpr size_t first() const { return first_; }  // offset of the first record
  constexpr size_t per_page() const { return (kPageSize - first_) / size_; }
  constexpr uint64_t PagesFor(uint64_t records) const {
    return (records + per_page() - 1) / per_page();
  }

  // i < per_page().
  void Write(PageBytes page, size_t i, const FlashEntry& entry) const;
  FlashEntry Read(ConstPageBytes page, size_t i) const;
  uint64_t HashAt(ConstPageBytes page, size_t i) const {
    return DecodeHash(page.subspan(first_ + i * size_).first<kHashSize>());
  }
  // The bytes after hash and location.
  MutableByteView Extra(PageBytes page, size_t i) const {
    return page.subspan(first_ + i * size_ + kEntrySize, size_ - kEntrySize);
  }
  ByteView Extra(ConstPageBytes page, size_t i) const {
    return page.subspan(first_ + i * size_ + kEntrySize, size_ - kEntrySize);
  }
  // The last of the first `count` records with this hash.
  std::optional<FlashEntry> FindLast(ConstPageBytes page, size_t count, uint64_t hash) const;

 private:
  size_t size_;
  size_t first_;
};

}  // namespace siltfs
