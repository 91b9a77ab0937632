// Writes entries with hashed slots, in order, to pages that end where bins of hashes end
// (page_bounds.h). Used for SILT's SortedStores and sorted runs.
//
// Thread-safety: belongs to one thread. Memory: the entries of one bin, and the boundaries.
#pragma once

#include <vector>

#include "index/flash/frozen_file.h"
#include "index/flash/page_bounds.h"

namespace siltfs {

class BinnedPages {
 public:
  // `file` must outlive this object, and gets its entries from it only.
  BinnedPages(FrozenFileWriter& file, const HashBins& bins);

  // Appends the entry of a hash; hashes must rise.
  Status Append(uint64_t hash, const SlotEntry& entry);
  // Appends the last bin, and returns the boundaries of the pages. Requires an entry. Call once.
  Result<PageBounds> Finish();

 private:
  Status AppendBin();

  FrozenFileWriter& file_;
  const HashBins bins_;
  PageBoundsBuilder bounds_;
  std::vector<SlotEntry> bin_entries_;  // of the last bin, which are not in the file yet
  uint64_t bin_ = 0;
};

}  // namespace siltfs
