#include "index/flash/binned_pages.h"

namespace siltfs {

BinnedPages::BinnedPages(FrozenFileWriter& file, const HashBins& bins)
    : file_(file), bins_(bins), bounds_(bins, kChunkSlots.slots_per_page()) {}

Status BinnedPages::Append(uint64_t hash, const SlotEntry& entry) {
  const uint64_t bin = bins_.Of(hash);
  if (bin != bin_) SILTFS_RETURN_IF_ERROR(AppendBin());
  bin_ = bin;
  bin_entries_.push_back(entry);
  return Status::Ok();
}

// Appends the entries of the last bin, to the present page if this has room for all of them.
Status BinnedPages::AppendBin() {
  if (bin_entries_.size() > file_.room_in_page()) file_.EndPage();
  for (const SlotEntry& entry : bin_entries_) {
    const uint32_t pages = file_.pages();
    SILTFS_RETURN_IF_ERROR(file_.Append(entry));
    if (file_.pages() > pages) bounds_.AddPage(bin_);
  }
  bin_entries_.clear();
  return Status::Ok();
}

Result<PageBounds> BinnedPages::Finish() {
  SILTFS_RETURN_IF_ERROR(AppendBin());
  return bounds_.Finish();
}

}  // namespace siltfs
