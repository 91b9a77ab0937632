#include "index/flash/flash_lookup.h"

namespace siltfs {

void FlashLookup::Begin(const FlashPartition& partition, const PageFiles& files) {
  files_ = &files;
  version_ = partition.Begin(state_);
}

std::optional<PageRead> FlashLookup::NextRead() {
  while (version_ != nullptr && !state_.found && status_.ok()) {
    state_.page_is_spare = false;
    const auto page = version_->NextPage(state_);
    if (!page) break;
    if (const auto place = files_->Resolve(*page)) {
      reading_ = *page;
      seed_ = place->seed;
      return PageRead{.file = place->file, .offset = place->offset};
    }
    // Only damage leads to a page that does not exist.
    if (!state_.page_is_spare) ++damaged_pages_;
    version_->Take(state_, std::nullopt);
  }
  return std::nullopt;
}

void FlashLookup::Take(const Status& status, ConstPageBytes bytes) {
  ++pages_read_;
  if (!status.ok()) {
    // End the lookup. An older entry must not be returned instead of an entry that cannot be read.
    status_ = status;
    status_.IgnoreError("the caller checks it when the lookup has ended");
    return;
  }
  const bool whole = CheckFlashPage(bytes, reading_.page(), seed_).has_value();
  if (!whole && !state_.page_is_spare) ++damaged_pages_;
  version_->Take(state_, whole ? std::optional(bytes) : std::nullopt);
}

}  // namespace siltfs
