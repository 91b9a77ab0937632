// A slicefilter: the Bloom filters of up to 256 incarnations of one partition, on flash ("Design
// Patterns for Tunable and Efficient SSD-based Indexes", section 6). The bits of one position over
// all incarnations are adjacent, so that one page read tests a position in all of them. This is a
// slice; an incarnation is a column.
//
// A slicefilter never changes. A column is added by reading it and writing another one. A row has a
// bit for each column, rounded up to bytes, so early incarnations write less.
//
// Functions and plain values, safe to call from any thread. Format: docs/format.md, "SliceBloom".
#pragma once

#include <array>
#include <cstdint>

#include "index/flash/bloom_filter.h"
#include "index/flash/page_files.h"
#include "index/flash/payload_pages.h"

namespace siltfs {

inline constexpr uint8_t kSliceBloomPage = 2;
inline constexpr uint32_t kMostColumns = 256;

// A set of columns.
struct Columns {
  std::array<uint64_t, kMostColumns / 64> words = {};

  static Columns First(uint32_t count);  // 0 to count - 1
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  bool Has(uint32_t column) const { return (words[column / 64] >> column % 64 & 1) != 0; }
  void And(const Columns& other) {
    for (size_t i = 0; i < words.size(); ++i) words[i] &= other.words[i];
  }
};

struct SliceFilter {
  PageAddress first;     // none: it was released
  uint32_t columns = 0;  // 1 to kMostColumns

  static uint32_t RowBytes(uint32_t columns) { return (columns + 7) / 8; }
  static uint32_t RowsPerPage(uint32_t columns) {
    return static_cast<uint32_t>(kPayloadPerPage) / RowBytes(columns);
  }
  static uint32_t Pages(uint32_t positions, uint32_t columns) {
    return (positions + RowsPerPage(columns) - 1) / RowsPerPage(columns);
  }
  uint32_t PageOf(uint32_t position) const { return position / RowsPerPage(columns); }
  // The row of a position in its page. A forged row may have bits past `columns`.
  Columns Row(ConstPageBytes page, uint32_t position) const;

  friend bool operator==(const SliceFilter&, const SliceFilter&) = default;
};

// Appends a slicefilter with the columns of `old` and, as column `column`, a filter; positions =
// filter.shape().bits(). If `old` has that column, its bits are kept, too. Rows of `old` that are
// damaged get all bits, so that nothing is ruled out wrongly; `damaged_pages` is raised by their
// pages. Requires old.columns >= column. The caller must have a pin.
Result<SliceFilter> WriteSliceFilter(PageFiles& files, size_t log, const SliceFilter& old,
                                     uint32_t column, const BloomFilter& filter,
                                     uint64_t& damaged_pages);

}  // namespace siltfs
