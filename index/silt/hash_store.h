// A HashStore (SILT, section 3.2): a LogStore's entries in the order of its cuckoo table, so that
// the place of a tag in the filter is the place of the entry on flash, and the filter needs no
// offsets. Written sequentially from a LogStore that is full; immutable.
//
// The filter can be left out of memory (section 4, "Fail-Graceful Indexing"). The paper then reads
// it from flash, two reads, and the entry after that. But what the filter's two buckets say of is
// in the file's same two buckets: those are read at once, and two reads are all.
//
// Thread-safety: const, so any. Memory: the filter, 17.3 bits an entry; without, nothing that grows
// with the entries. Durability: frozen_file.h. Format: docs/format.md, "SILT HashStore".
#pragma once

#include <memory>
#include <optional>

#include "index/silt/cuckoo_filter.h"
#include "index/silt/frozen_file.h"
#include "index/silt/log_store.h"

namespace siltfs {

class HashStore {
 public:
  // With its filter, which is read from flash, or without. kCorruption, kNotFound, kIoError.
  static Result<std::shared_ptr<const HashStore>> Open(Env& env, const std::string& directory,
                                                       const StoreFileId& id,
                                                       const SlotLayout& layout = kChunkSlots);
  static Result<std::shared_ptr<const HashStore>> OpenWithoutFilter(
      Env& env, const std::string& directory, const StoreFileId& id,
      const SlotLayout& layout = kChunkSlots);

  struct Written {
    std::unique_ptr<FrozenFileWriter> file;  // finished, but not synced
    uint64_t damaged_pages = 0;              // of the log; their entries are not in the store
  };
  // Writes the file of a HashStore of all that `log`, which must be frozen, finds. Memory: the
  // log's pages.
  static Result<Written> WriteFrom(const LogStore& log, Env& env, const std::string& directory,
                                   const StoreFileId& id, Throttle& throttle);

  // The same store, with its filter read from flash, or without.
  Result<std::shared_ptr<const HashStore>> WithFilter() const;
  std::shared_ptr<const HashStore> WithoutFilter() const;
  Result<CuckooFilter> ReadFilter() const;

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  // Null where it was left out of memory.
  const CuckooFilter* filter() const { return filter_ ? &*filter_ : nullptr; }
  // What the filter takes when it is in memory.
  uint64_t filter_bytes() const { return file_->info().payload_bytes; }
  uint64_t entries() const { return file_->info().entries; }  // tombstones included

  const SlotLayout& layout() const { return file_->layout(); }
  // The entry of a slot, from the page that holds it: page layout().PageOf(slot) of the file.
  SlotEntry EntryInPage(uint32_t slot, ConstPageBytes bytes) const {
    return DecodeSlot(SlotOfPage(layout(), bytes, layout().IndexOf(slot)));
  }

  // Without a filter: the pages in one of which a key of this hash is, if it is there; page numbers
  // rather than slots. Two, or three where some entries found no place in the table; more where
  // slots are so large that a bucket takes several pages.
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
  const std::shared_ptr<StoreCounters> counters_;  // of the store, with its filter or without
};

}  // namespace siltfs
