// A lookup in the slicefilters of a partition. It reads a page for each position of the name that
// lies in another page, and ends early in a slicefilter whose groups are all ruled out
// (index/flash/lookup_batch.h).
//
// Thread-safety: a lookup belongs to one thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "index/flash/lookup_batch.h"
#include "index/slice_bloom/slice_filter.h"

namespace siltfs {

// The slicefilters of a partition, by the numbers of their groups.
using SliceFilters = std::vector<SliceFilter>;

class SliceBloomLookup {
 public:
  static constexpr unsigned kMostProbes = 16;

  SliceBloomLookup(uint64_t hash, const BloomShape& shape);

  // The groups when the lookup began.
  struct Moment {
    uint64_t groups = 0;     // that had ended; the number of the present group
    bool in_memory = false;  // the present group may have the name
    uint64_t moves = 0;      // segments that had moved to the present group of their time
  };

  uint64_t hash() const { return hash_; }
  // `files` must have been pinned before `filters` was taken.
  void Begin(const PageFiles& files, std::shared_ptr<const SliceFilters> filters,
             const Moment& moment);

  std::optional<PageRead> NextRead();
  void Take(const Status& status, ConstPageBytes bytes);

  // The groups that may have the name, as filter and column, the newest first.
  struct Found {
    uint32_t filter = 0;
    uint32_t column = 0;
  };
  const std::vector<Found>& found() const { return found_; }
  const Moment& moment() const { return moment_; }
  uint32_t pages_read() const { return pages_read_; }
  uint32_t damaged_pages() const { return damaged_pages_; }
  // Not OK if a page could not be read; then groups may be missing.
  const Status& status() const { return status_; }

 private:
  const SliceFilter& filter() const { return (*filters_)[left_ - 1]; }
  void EndFilter();

  const uint64_t hash_;
  unsigned probes_ = 0;
  std::array<uint32_t, kMostProbes> positions_ = {};
  const PageFiles* files_ = nullptr;
  std::shared_ptr<const SliceFilters> filters_;
  size_t left_ = 0;      // filters that are not finished; the last of them is searched
  uint32_t tested_ = 0;  // bits of the probes that were tested in it
  Columns columns_;      // that are not ruled out
  PageAddress reading_;
  uint32_t reading_page_ = 0;  // of the slicefilter
  uint64_t seed_ = 0;
  std::vector<Found> found_;
  Moment moment_;
  uint32_t pages_read_ = 0;
  uint32_t damaged_pages_ = 0;
  Status status_;
};

}  // namespace siltfs
