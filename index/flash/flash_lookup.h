// A lookup in a partition of an engine with page files: in the buffer, then on flash. It reads one
// page at a time (lookup_batch.h).
//
// Thread-safety: a FlashLookup belongs to one thread.
#pragma once

#include <optional>
#include <vector>

#include "index/flash/flash_partition.h"
#include "index/flash/lookup_batch.h"

namespace siltfs {

class FlashLookup {
 public:
  explicit FlashLookup(uint64_t hash) { state_.hash = hash; }

  uint64_t hash() const { return state_.hash; }
  // `files` must have been pinned before the partition was found.
  void Begin(const FlashPartition& partition, const PageFiles& files);

  std::optional<PageRead> NextRead();
  void Take(const Status& status, ConstPageBytes bytes);

  // Empty until an entry was found. May be a tombstone.
  const std::optional<FlashEntry>& found() const { return state_.found; }
  uint32_t pages_read() const { return pages_read_; }
  uint32_t damaged_pages() const { return damaged_pages_; }
  // Not OK if a page could not be read; then the result is unknown.
  const Status& status() const { return status_; }

 private:
  LookupState state_;
  const PageFiles* files_ = nullptr;
  std::shared_ptr<const FlashVersion> version_;
  PageAddress reading_;
  uint64_t seed_ = 0;
  uint32_t pages_read_ = 0;
  uint32_t damaged_pages_ = 0;
  Status status_;
};

}  // namespace siltfs
