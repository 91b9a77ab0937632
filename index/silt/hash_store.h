// A HashStore (SILT, section 3.2): a LogStore's entries in the order of its cuckoo table, so that
// the place of a tag in the filter is the place of the entry on flash, and the filter needs no
// offsets. Written sequentially from a LogStore that is full; immutable.
//
// Thread-safety: const, so any. Memory: the filter, 17.3 bits an entry. Durability: frozen_file.h.
// Format: docs/format.md, "SILT HashStore".
#pragma once

#include <memory>

#include "index/silt/cuckoo_filter.h"
#include "index/silt/frozen_file.h"
#include "index/silt/log_store.h"

namespace siltfs {

class HashStore {
 public:
  // Reads the filter from flash. kCorruption, kNotFound, kIoError.
  static Result<std::shared_ptr<const HashStore>> Open(Env& env, const std::string& directory,
                                                       const StoreFileId& id);

  struct Written {
    std::unique_ptr<FrozenFileWriter> file;  // finished, but not synced
    uint64_t damaged_pages = 0;              // of the log; their entries are not in the store
  };
  // Writes the file of a HashStore of all that `log`, which must be frozen, finds. Memory: the
  // log's pages.
  static Result<Written> WriteFrom(const LogStore& log, Env& env, const std::string& directory,
                                   const StoreFileId& id, Throttle& throttle);

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  const CuckooFilter& filter() const { return filter_; }
  uint64_t entries() const { return file_->info().entries; }  // tombstones included

  // The entry of a slot, from the page that holds it: page slot / kSlotsPerPage of the file.
  static IndexEntry EntryInPage(uint32_t slot, ConstPageBytes bytes) {
    return DecodeSlot(SlotOfPage(bytes, slot % kSlotsPerPage));
  }

  StoreCounters& counters() const { return counters_; }
  IndexComponentStats Stats() const;

 private:
  HashStore(std::shared_ptr<const FrozenFile> file, CuckooFilter filter)
      : file_(std::move(file)), filter_(std::move(filter)) {}

  const std::shared_ptr<const FrozenFile> file_;
  const CuckooFilter filter_;
  mutable StoreCounters counters_;
};

}  // namespace siltfs
