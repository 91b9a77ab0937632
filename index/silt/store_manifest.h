// Which HashStores and SortedStores make up a SILT index, from where on its logs count, and up to
// which sequence all that was put is durable. The one file that is replaced in place, atomically;
// without it the others mean nothing. A log needs no entry here: it counts if its id is not below
// its partition's first one, and its pages carry on where the log before it ended. Format:
// docs/format.md, "SILT manifest".
//
// Durability: WriteStoreManifest returns OK when the manifest and the names of files made before it
// are durable. After an error the old one or the new one is there. Functions only, safe to call
// from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "index/silt/slot.h"
#include "store/env/env.h"

namespace siltfs {

// The next store of a partition's logs: what has been converted lies before it.
struct PartitionRecord {
  uint64_t first_log_id = 0;  // logs with smaller ids are converted
  uint32_t first_page = 0;    // the number of the first page of the first log
  // Pages with numbers below this one (as far from first_page) are durable: were they missing, that
  // would be damage.
  uint32_t durable_page = 0;
  // Everything put with sequences up to this one lies in this partition's converted logs.
  uint64_t complete_sequence = 0;
  std::vector<uint64_t> hash_ids;  // of the HashStores, oldest first, rising
  uint64_t sorted_id = 0;          // of the SortedStore; 0: none

  friend bool operator==(const PartitionRecord&, const PartitionRecord&) = default;
};

struct StoreManifest {
  uint64_t hash_secret = 0;
  unsigned bucket_bits = 0;     // of the LogStores' tables
  unsigned partition_bits = 0;  // 2^bits partitions
  SlotLayout layout = kChunkSlots;
  // Everything put with sequences up to this one is in durable pages and stores.
  uint64_t complete_sequence = 0;
  // Ids are never used twice in an index. Logs are begun without a new manifest, so there may be
  // some with greater ids.
  uint64_t next_id = 1;
  // Damaged pages were met when stores were merged, and their entries are gone.
  bool entries_lost = false;
  std::vector<PartitionRecord> partitions;  // 2^partition_bits

  friend bool operator==(const StoreManifest&, const StoreManifest&) = default;
};

std::string EncodeStoreManifest(const StoreManifest& manifest);
// kCorruption if anything is not as EncodeStoreManifest writes it, kNeedsNewer for a later version.
Result<StoreManifest> DecodeStoreManifest(ByteView bytes);

// Nothing if there is no manifest.
Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory);
Status WriteStoreManifest(Env& env, const std::string& directory, const StoreManifest& manifest);

}  // namespace siltfs
