// An incarnation: a hash table on flash, made from a buffer or from a whole partition, that never
// changes (BufferHash; "Design Patterns for Tunable and Efficient SSD-based Indexes", section 2.1).
//
// The paper writes the cuckoo table as it is in memory, at a load of half its places. Here the
// entries are put into pages in the order of their hashes, so that a hash belongs to one page,
// which its position among the hashes of the partition gives. So a lookup reads one page, as with
// the paper's layout, and pages are four fifths full or more. A Bloom filter follows the pages.
//
// Functions and plain values, safe to call from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "index/flash/bloom_filter.h"
#include "index/flash/flash_partition.h"

namespace siltfs {

struct Incarnation {
  PageAddress first;
  uint32_t pages = 0;  // with records
  uint64_t entries = 0;
  std::shared_ptr<const BloomFilter> filter;  // null: not in memory
  bool filter_is_damaged = false;

  // The page of a hash of the partition, as a number among the incarnation's pages.
  uint32_t PageOf(const HashPrefix& prefix, uint64_t hash) const;
};

// What all incarnations of an index have in common.
struct IncarnationFormat {
  static constexpr uint8_t kRecordPage = 2;
  static constexpr uint8_t kFilterPage = 3;

  RecordLayout layout;
  unsigned filter_bits = 0;  // of each entry; 0: no filters

  BloomShape FilterShape(uint64_t entries) const { return BloomShape::Flat(entries, filter_bits); }
  uint32_t FilterPages(const Incarnation& incarnation) const;
  uint32_t AllPages(const Incarnation& incarnation) const {
    return incarnation.pages + FilterPages(incarnation);
  }

  // Writes an incarnation to a log. `entries` are in the order of their hashes, and not empty.
  Result<Incarnation> Write(PageFiles& files, size_t log, const HashPrefix& prefix,
                            std::span<const FlashEntry> entries) const;
  // Reads the filter into memory. A damaged one is left out and noted. Call it with a pin.
  Status LoadFilter(const PageFiles& files, Incarnation& incarnation) const;
};

}  // namespace siltfs
