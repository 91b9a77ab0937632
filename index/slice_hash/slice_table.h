// A slicetable on flash: the buckets of all its incarnations, so that one page read searches a
// bucket in all of them ("Design Patterns for Tunable and Efficient SSD-based Indexes", section
// 5.1). It never changes; a flush reads it and writes another one.
//
// The paper gives each incarnation a fixed column of each slice. Here an entry may have any slot of
// the slices of its two buckets, because a slicetable has each hash at most once. All entries are
// placed again for each flush (slice_placement.h). So most are in their first bucket, and slots
// that became free are used again.
//
// A Bloom filter of all entries may follow the slices. It is read into memory separately.
//
// Functions and plain values, safe to call from any thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "index/flash/flash_partition.h"
#include "index/slice_hash/slice_placement.h"
#include "index/slice_hash/slice_shape.h"

namespace siltfs {

inline constexpr uint8_t kSlicePage = 2;
inline constexpr uint8_t kSliceFilterPage = 3;

struct SliceTable {
  PageAddress first;
  // A placement exists in which no bucket has more than this times the ways of a table. So there is
  // room for one more table if this is less than the most.
  uint32_t incarnations = 0;
  uint64_t entries = 0;
  std::shared_ptr<const BloomFilter> filter;  // null: not in memory
  bool filter_is_damaged = false;

  BloomShape FilterShape(const SliceShape& shape) const {
    return BloomShape::Flat(entries, shape.filter_bits);
  }
  uint32_t FilterPages(const SliceShape& shape) const;
  uint32_t AllPages(const SliceShape& shape) const {
    return shape.Pages(incarnations) + FilterPages(shape);
  }
  PageAddress PageOf(const SliceShape& shape, uint32_t bucket) const {
    return first + shape.PageOf(incarnations, bucket);
  }
  // The entry of a hash in a bucket's slice, which is in this page.
  std::optional<FlashEntry> Find(const SliceShape& shape, ConstPageBytes page, uint32_t bucket,
                                 uint64_t hash) const;

  // Calls visit(bucket, entry) for all entries; counts damaged pages. The caller must have a pin.
  using Visit = std::function<void(uint32_t bucket, const FlashEntry& entry)>;
  Status Read(const PageFiles& files, const SliceShape& shape, const Visit& visit,
              uint64_t& damaged_pages) const;
  // Reads the filter into memory. A damaged one is left out and noted. The caller must have a pin.
  Status LoadFilter(const PageFiles& files, const SliceShape& shape);
};

// Appends a slicetable with these entries, of which there is at least one, to a log. Chooses the
// least number of incarnations, at most `most_incarnations`, that has room for them. Returns
// kCorruption without a device call if there is none.
Result<SliceTable> WriteSliceTable(PageFiles& files, size_t log, const SliceShape& shape,
                                   SlicePlacement& placement, uint32_t most_incarnations);

}  // namespace siltfs
