// Makes stores of a SILT index from lists of entries, in the root directory of a simulated device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "history.h"
#include "index/silt/conversion.h"
#include "index/silt/hash_store.h"
#include "index/silt/partition.h"
#include "index/silt/run_store.h"
#include "store/env/sim_env.h"

namespace siltfs::testing {

// An entry of NameOf(number); `version` distinguishes repeated puts.
IndexEntry NumberedEntry(uint64_t number, uint32_t version = 0);
IndexEntry NumberedTombstone(uint64_t number);
// The entries with numbers [first, first + count).
std::vector<IndexEntry> NumberedEntries(uint64_t first, uint64_t count, uint32_t version = 0);

// Changes one byte of a file.
void FlipByte(Env& env, const std::string& path, uint64_t offset);

struct StoreMaker {
  static constexpr uint64_t kSecret = 99;
  static constexpr NameHash kNameHash{kSecret};
  static constexpr const char* kDirectory = "/";

  uint64_t Hash(const ChunkName& name) const { return kNameHash.Of(name); }
  uint64_t Hash(uint64_t number) const { return Hash(NameOf(number)); }
  // The key under which the stores have the name.
  OrderKey Key(const ChunkName& name) const { return kNameHash.KeyOf(layout, name); }
  // The entry as the stores have it.
  SlotEntry Stored(const IndexEntry& entry) const {
    SlotEntry stored(entry);
    if (layout.hashed()) stored.hash = Hash(entry.name);
    return stored;
  }

  // Makes a LogStore: the entries are put in the given order, sealed and written out.
  std::shared_ptr<LogStore> Log(std::span<const IndexEntry> entries);
  std::shared_ptr<const HashStore> HashStoreOf(std::span<const IndexEntry> entries);
  std::shared_ptr<const RunStore> RunOf(std::span<const IndexEntry> entries,
                                        double runs_per_partition = 4);
  // Number of entries in a page of a frozen file.
  size_t EntriesIn(const FrozenFile& file, uint32_t page) const;
  // Makes a SortedStore: sorts the entries by OrderKey. `entries` must not be empty.
  std::shared_ptr<const SortedStore> Sorted(std::vector<IndexEntry> entries);

  std::string PathOf(const StoreFileId& file) const { return "/" + StoreFileName(file); }

  SimEnv env;
  Throttle throttle{env, 0};
  unsigned bucket_bits = 6;
  SlotLayout layout = kChunkSlots;                    // of LogStores and HashStores
  PageIndexKind page_index = PageIndexKind::kBounds;  // of SortedStores
  uint64_t next_id = 1;
};

}  // namespace siltfs::testing
