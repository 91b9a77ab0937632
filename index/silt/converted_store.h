// An immutable store that a full LogStore was converted into: a HashStore (SILT, section 3.2), or a
// sorted run (run_store.h; not in the paper). A partition may have both kinds, because the choice
// is made at each conversion; the footer of a file names its kind. Lookups, merges, residency and
// verification use only this interface.
//
// Thread-safety: const, so any thread may call. Memory: the filter; without it, a constant.
// Durability: frozen_file.h. Errors: kCorruption with the path for damaged files.
#pragma once

#include <functional>
#include <memory>

#include "index/flash/cuckoo_table.h"
#include "index/flash/frozen_file.h"
#include "index/flash/store_counters.h"

namespace siltfs {

class ConvertedStore {
 public:
  virtual ~ConvertedStore() = default;
  ConvertedStore(const ConvertedStore&) = delete;
  ConvertedStore& operator=(const ConvertedStore&) = delete;

  // Where a key may be: slots of the file, or pages of which any slot may have the key.
  struct Places {
    CuckooTable::Candidates candidates;
    bool are_pages = false;
  };
  // Needs no read.
  virtual Places PlacesOf(uint64_t hash) const = 0;
  // Prefetches the memory of the filter that PlacesOf reads first.
  virtual void Prefetch(uint64_t hash) const = 0;

  // Whether the filter is in memory.
  virtual bool has_filter() const = 0;
  // Copies of this store: WithFilter reads the filter from flash, WithoutFilter has none in memory.
  // Both share the file and the counters.
  virtual Result<std::shared_ptr<const ConvertedStore>> WithFilter() const = 0;
  virtual std::shared_ptr<const ConvertedStore> WithoutFilter() const = 0;
  // Memory of the filter when loaded.
  virtual uint64_t filter_bytes() const { return file_->info().payload_bytes; }

  // Whether the entries are in the order of their keys, and a slot of zeros ends its page.
  virtual bool sorted() const = 0;
  // Reads the filter from flash and returns a function that tells whether lookups search a slot of
  // the file for a key of this hash. The function must not outlive the store.
  using Finder = std::function<bool(uint64_t hash, uint32_t slot)>;
  virtual Result<Finder> ReadFinder() const = 0;

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  const SlotLayout& layout() const { return file_->layout(); }
  uint64_t entries() const { return file_->info().entries; }  // tombstones included
  // The entry of a slot, from the page that holds it: page layout().PageOf(slot) of the file.
  SlotEntry EntryInPage(uint32_t slot, ConstPageBytes bytes) const {
    return DecodeSlot(SlotOfPage(layout(), bytes, layout().IndexOf(slot)));
  }

  StoreCounters& counters() const { return *counters_; }
  virtual IndexComponentStats Stats() const = 0;

 protected:
  ConvertedStore(std::shared_ptr<const FrozenFile> file, std::shared_ptr<StoreCounters> counters)
      : file_(std::move(file)), counters_(std::move(counters)) {}

  // Statistics without memory and occupancy.
  IndexComponentStats FileStats() const {
    IndexComponentStats stats = counters_->Stats(file_id());
    stats.entries = entries() - file_->info().tombstones;
    stats.flash_bytes = file_->size();
    stats.flash_bytes_written = file_->size();
    return stats;
  }

  // Shared by the copies with and without the filter.
  const std::shared_ptr<const FrozenFile> file_;
  const std::shared_ptr<StoreCounters> counters_;
};

// The file that a LogStore was converted into.
struct ConvertedFile {
  std::unique_ptr<FrozenFileWriter> file;  // finished, but not synced
  uint64_t damaged_pages = 0;              // of the log; the store lacks their entries
};

}  // namespace siltfs
