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

#include "index/silt/cuckoo_filter.h"
#include "index/silt/frozen_file.h"
#include "index/silt/log_store.h"

namespace siltfs {

class HashStore {
 public:
  // Open also reads the filter from flash; OpenWithoutFilter leaves it out of memory. Both may
  // return kCorruption, kNotFound or kIoError.
  static Result<std::shared_ptr<const HashStore>> Open(Env& env, const std::string& directory,
                                                       const StoreFileId& id,
                                                       const SlotLayout& layout = kChunkSlots);
  static Result<std::shared_ptr<const HashStore>> OpenWithoutFilter(
      Env& env, const std::string& directory, const StoreFileId& id,
      const SlotLayout& layout = kChunkSlots);

  struct Written {
    std::unique_ptr<FrozenFileWriter> file;  // finished, but not synced
    uint64_t damaged_pages = 0;              // of the log; the store lacks their entries
  };
  // Writes the file of a HashStore with all entries in the table of `log`, which must be frozen.
  // Memory: the log's pages.
  static Result<Written> WriteFrom(const LogStore& log, Env& env, const std::string& directory,
                                   const StoreFileId& id, Throttle& throttle);

  // Copies of this store: WithFilter reads the filter from flash, WithoutFilter has none in memory.
  Result<std::shared_ptr<const HashStore>> WithFilter() const;
  std::shared_ptr<const HashStore> WithoutFilter() const;
  Result<CuckooFilter> ReadFilter() const;

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  // The filter; null if it was left out of memory.
  const CuckooFilter* filter() const { return filter_ ? &*filter_ : nullptr; }
  // Memory of the filter when loaded.
  uint64_t filter_bytes() const { return file_->info().payload_bytes; }
  uint64_t entries() const { return file_->info().entries; }  // tombstones included

  const SlotLayout& layout() const { return file_->layout(); }
  // The entry of a slot, from the page that holds it: page layout().PageOf(slot) of the file.
  SlotEntry EntryInPage(uint32_t slot, ConstPageBytes bytes) const {
    return DecodeSlot(SlotOfPage(layout(), bytes, layout().IndexOf(slot)));
  }

  // For a store without its filter in memory: returns the pages that may hold a key of this hash.
  // The candidates are page numbers, not slots. There are two, or three if the table had stashed
  // entries; more if slots are so large that a bucket takes several pages.
  CuckooTable::Candidates PagesOf(uint64_t hash) const;

  StoreCounters& counters() const { return *counters_; }
  IndexComponentStats Stats() const;

 private:
  HashStore(std::shared_ptr<const FrozenFile> file, std::optional<CuckooFilter> filter,
            std::shared_ptr<StoreCounters> counters)
      : file_(std::move(file)), filter_(std::move(filter)), counters_(std::move(counters)) {}

  size_t places() const { return kBucketWays << file_->info().bucket_bits; }

  const std::shared_ptr<const FrozenFile> file_;
  const std::optional<CuckooFilter> filter_;
  // Shared by the copies with and without the filter.
  const std::shared_ptr<StoreCounters> counters_;
};

}  // namespace siltfs
