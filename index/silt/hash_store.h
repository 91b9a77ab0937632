// A HashStore (SILT, section 3.2): a LogStore's entries in the order of its cuckoo table. A tag's
// place in the filter is therefore the entry's slot on flash, and the filter needs no offsets. A
// HashStore is written sequentially from a full LogStore, and is immutable.
//
// The filter can be left out of memory (section 4, "Fail-Graceful Indexing"). The paper then reads
// the filter from flash with two reads, and then the entry. Here a lookup does not read the filter.
// It reads the slots of the key's two buckets from the file, which hold all entries that the filter
// could find there. That takes only two reads.
//
// Thread-safety: const, so any thread may call. Memory: the filter, 16.8 bits per entry; without
// it, a constant. Durability: frozen_file.h. Format: docs/format.md, "SILT HashStore".
#pragma once

#include <memory>
#include <optional>

#include "index/flash/cuckoo_filter.h"
#include "index/silt/converted_store.h"
#include "index/silt/log_store.h"

namespace siltfs {

class HashStore final : public ConvertedStore {
 public:
  // Open also reads the filter from flash; Of, which gets the opened file, leaves it out of memory.
  // Both may return kCorruption, kNotFound or kIoError.
  static Result<std::shared_ptr<const HashStore>> Open(Env& env, const std::string& directory,
                                                       const StoreFileId& id,
                                                       const SlotLayout& layout = kChunkSlots);
  static Result<std::shared_ptr<const HashStore>> Of(std::shared_ptr<const FrozenFile> file);

  // Writes the file of a HashStore with all entries in the table of `log`, which must be frozen.
  // Memory: the log's pages.
  static Result<ConvertedFile> WriteFrom(const LogStore& log, Env& env,
                                         const std::string& directory, const StoreFileId& id,
                                         Throttle& throttle);

  Places PlacesOf(uint64_t hash) const override;
  void Prefetch(uint64_t hash) const override {
    if (filter_) filter_->Prefetch(hash);
  }
  bool has_filter() const override { return filter_.has_value(); }
  Result<std::shared_ptr<const ConvertedStore>> WithFilter() const override;
  std::shared_ptr<const ConvertedStore> WithoutFilter() const override;
  bool sorted() const override { return false; }
  Result<Finder> ReadFinder() const override;
  IndexComponentStats Stats() const override;

  Result<CuckooFilter> ReadFilter() const;
  // The filter; null if it was left out of memory.
  const CuckooFilter* filter() const { return filter_ ? &*filter_ : nullptr; }

  // For a store without its filter in memory: returns the pages that may hold a key of this hash.
  // The candidates are page numbers, not slots. There are two, or three if the table had stashed
  // entries; more if slots are so large that a bucket takes several pages.
  CuckooTable::Candidates PagesOf(uint64_t hash) const;

 private:
  HashStore(std::shared_ptr<const FrozenFile> file, std::optional<CuckooFilter> filter,
            std::shared_ptr<StoreCounters> counters)
      : ConvertedStore(std::move(file), std::move(counters)), filter_(std::move(filter)) {}

  size_t places() const { return kBucketWays << file_->info().bucket_bits; }

  const std::optional<CuckooFilter> filter_;
};

}  // namespace siltfs
