// The arithmetic of slicetables: which slot of which page belongs to a bucket ("Design Patterns for
// Tunable and Efficient SSD-based Indexes", section 5.1).
//
// Slice b holds bucket b of all incarnations: with i incarnations of w ways, at least i * w slots.
// A page of a full slicetable is one slice. As long as there are few incarnations, several slices
// share a page, so that less is written. Slices share all slots of their page evenly.
//
// Plain values, safe to use from any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/flash/entry_table.h"
#include "index/flash/flash_page.h"

namespace siltfs {

struct SliceShape {
  RecordLayout layout;
  uint32_t buckets = 1;
  uint32_t most_incarnations = 32;  // 1 <= most_incarnations <= slots of a page
  unsigned filter_bits = 0;         // of each entry; 0: no filters

  uint32_t ways() const { return static_cast<uint32_t>(layout.per_page()) / most_incarnations; }
  // The table in memory that becomes an incarnation.
  EntryTable::Shape Table() const { return {.buckets = buckets, .ways = ways()}; }
  // The most entries of a slicetable.
  uint64_t MostEntries(uint32_t incarnations) const { return Table().places() * incarnations; }
  uint64_t Capacity() const { return MostEntries(most_incarnations); }
  // The least number of incarnations with so many entries. At least 1.
  uint64_t IncarnationsFor(uint64_t entries) const {
    return std::max<uint64_t>((entries + Table().places() - 1) / Table().places(), 1);
  }

  // --- A slicetable with `incarnations`, 1 to most_incarnations ---

  uint32_t SlicesPerPage(uint32_t incarnations) const {
    return std::min(buckets, static_cast<uint32_t>(layout.per_page()) / (ways() * incarnations));
  }
  uint32_t SlotsOfSlice(uint32_t incarnations) const {
    return static_cast<uint32_t>(layout.per_page()) / SlicesPerPage(incarnations);
  }
  uint32_t Pages(uint32_t incarnations) const {
    const uint32_t together = SlicesPerPage(incarnations);
    return (buckets + together - 1) / together;
  }
  uint32_t PageOf(uint32_t incarnations, uint32_t bucket) const {
    return bucket / SlicesPerPage(incarnations);
  }
  // The first slot of a bucket's slice in its page.
  uint32_t FirstSlot(uint32_t incarnations, uint32_t bucket) const {
    return bucket % SlicesPerPage(incarnations) * SlotsOfSlice(incarnations);
  }
};

}  // namespace siltfs
