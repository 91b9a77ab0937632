// A record of a SkimpyStash log: an entry, its bucket, and a pointer to the next older record of
// the bucket's chain ("SkimpyStash: RAM Space Skimpy Key-Value Store on Flash-based Storage",
// sections 4.3 and 4.5).
//
// A pointer names a page: the page's number in the log of its partition, plus 1; 0 ends a chain.
// The chain continues in that page with the bucket's last record there. A pointer to the record's
// own page means that the chain continues in the page, with the bucket's record before. So all
// records of a chain in one page cost one read, and the pointers of a chain never rise.
//
// A hash has two buckets. The first one wins: if both have records of a hash, those in the second
// one are obsolete. So a hash may be put into its first bucket at any time, and into its second
// bucket whenever the first one has no record of it. No insertion needs to read flash.
//
// Functions and plain values, safe to call from any thread.
#pragma once

#include <array>
#include <cstdint>

#include "index/flash/entry_table.h"
#include "index/flash/flash_page.h"

namespace siltfs {

// What all partitions of an index have in common.
struct SkimpyStashShape {
  static constexpr size_t kPointerSize = 4;
  static constexpr size_t kRecordSize = RecordLayout::kEntrySize + kPointerSize;
  static constexpr uint8_t kRecordPage = 2;
  static constexpr uint8_t kDirectoryPage = 3;
  // A log of more pages than its entries need, times this, is written again.
  static constexpr uint64_t kMostLogFactor = 4;
  // Bytes of the heads of all partitions of a new index, at most.
  static constexpr uint64_t kMostNewHeads = uint64_t{1} << 30;

  RecordLayout layout{kRecordSize};
  uint32_t entries_per_bucket = 8;  // k, in a full partition
  uint64_t capacity = 0;            // entries of a full partition
  bool enhanced = true;             // two buckets of each hash, counts and filters
  uint32_t garbage = 8;             // g: garbage records for each chain that is collected; 0: never
  uint64_t coalesce_ms = 0;         // a buffer of this age is written at the next put; 0: no limit

  uint32_t buckets() const;
  // The buckets of a hash; equal in the base design, and by chance.
  std::array<uint32_t, 2> BucketsOf(uint64_t hash) const;
  // Entries of a full buffer: a page, but less if the partition is small.
  uint32_t BufferRecords() const;
  EntryTable::Shape BufferShape() const;
  uint64_t MostLogPages() const { return kMostLogFactor * (capacity / BufferRecords() + 1); }
};

struct ChainRecord {
  static constexpr uint32_t kMostPointer = (1U << 31) - 1;

  FlashEntry entry;
  bool second = false;   // which of the hash's buckets it is in
  uint32_t pointer = 0;  // at most kMostPointer

  uint32_t BucketIn(const SkimpyStashShape& shape) const {
    return shape.BucketsOf(entry.hash)[second ? 1 : 0];
  }
};

// i < layout.per_page().
void WriteChainRecord(const RecordLayout& layout, PageBytes page, size_t i,
                      const ChainRecord& record);
ChainRecord ReadChainRecord(const RecordLayout& layout, ConstPageBytes page, size_t i);
// The number of records in a page; 0 if it is not a page of records.
size_t ChainRecordsIn(const RecordLayout& layout, ConstPageBytes page);

}  // namespace siltfs
