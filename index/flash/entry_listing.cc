#include "index/flash/entry_listing.h"

#include <algorithm>

namespace siltfs {

Result<EntryListing> ListEntries(const PartitionSnapshot& snapshot,
                                 const std::function<bool(SegmentId)>& gone) {
  EntryListing listing;
  listing.entries = snapshot.buffered;
  if (snapshot.version != nullptr) {
    SILTFS_RETURN_IF_ERROR(snapshot.version->Collect(
        [&](const FlashEntry& entry) { listing.entries.push_back(entry); }, listing.damaged_pages));
  }
  // Newer entries come first, and a stable sort leaves them there.
  std::ranges::stable_sort(listing.entries, {}, &FlashEntry::hash);
  // clang 14 cannot compile std::ranges::unique of libstdc++.
  const auto same_hash = [](const FlashEntry& a, const FlashEntry& b) { return a.hash == b.hash; };
  listing.entries.erase(std::unique(listing.entries.begin(), listing.entries.end(), same_hash),
                        listing.entries.end());
  std::erase_if(listing.entries, [&](const FlashEntry& entry) {
    return entry.tombstone() || (gone && gone(entry.location.segment));
  });
  return listing;
}

}  // namespace siltfs
