// SILT (Lim et al., SOSP 2011): a chunk index on flash in three kinds of stores, from one that is
// quick to write to one that needs hardly any memory. The hash of a name chooses one of P
// partitions. There it is put into the LogStore (section 3.1); a full LogStore is frozen, a new one
// begun, and the frozen one converted into a HashStore (3.2); HashStores are merged into the
// partition's SortedStore (3.3). docs/silt.md says how, docs/format.md describes the files.
//
// Thread-safety, errors, durability: index/chunk_index.h. Lookups hold no lock while they read
// flash. Conversions and merges run in a thread of the index; when it falls behind, Put waits, so
// memory stays bounded. When the disk is full Put and Flush fail with kNoSpace and may be repeated
// when it no longer is; after any other failure to write they fail for good, as what the device
// then holds is unknown.
//
// Memory: 6.5 bytes an entry in LogStores, 2.1 in HashStores, 0.04 in SortedStores;
// hash_store_share says how many are where. Open files: one for every store; raise the limit.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "index/chunk_index.h"
#include "store/env/env.h"

namespace siltfs {

struct SiltIndexOptions {
  std::string directory;
  bool read_only = false;

  // --- Of a new index; an old one keeps what it was made with ---

  // 2^partition_bits partitions. 0 to 12.
  unsigned partition_bits = 6;
  // A LogStore's table has 2^bucket_bits buckets of 4 entries; 1 to 15.
  unsigned bucket_bits = 11;
  // Drawn from Env::FillRandom if not given. For tests that pin the format.
  std::optional<uint64_t> hash_secret = std::nullopt;

  // --- Of this opening ---

  // A LogStore is frozen at this many pages of 4 KiB even if its table has room: names put again
  // and again fill a log but no table.
  uint32_t max_log_pages = 4096;
  // How much of a log is written at once, in pages of 4 KiB.
  uint32_t write_batch_pages = 2;
  // Merges keep the entries in HashStores at this share of all: with more, filters take more
  // memory; with less, more is written (section 5: WA is about 2.1 + 1 / (2 share)).
  double hash_store_share = 0.145;
  // A partition with more HashStores is merged, as each is one that a lookup may have to read in
  // vain (RA). Puts wait when one has a quarter more.
  unsigned max_hash_stores = 160;
  // Puts wait when this many LogStores are frozen and not yet converted.
  unsigned max_frozen_logs = 8;
  // For sorting HashStores.
  size_t sort_memory_bytes = 768U << 10;
  // Rate limit of conversions and merges; 0: none.
  uint64_t background_bytes_per_second = 0;
  // Conversions and merges run in a thread; without, within Put: for tests, which want each call to
  // the device in its place.
  bool background = true;
  // How much memory it may use at first; SetMemoryLimit changes it.
  uint64_t memory_limit = kNoMemoryLimit;
  // Opening returns before logs have been replayed: lookups wait for the partitions they need,
  // other calls for all. Otherwise it returns when nothing is left to be read but filters and
  // tries.
  // After a failure to write then, also on a full disk, the index must be opened again.
  bool serve_early = false;
  // Section 4's synchronous mode: what was put is durable when Put returns.
  bool synchronous = false;
  // Everything is made durable after this many puts even if nobody flushes, so that little is to be
  // put again after a crash.
  uint64_t entries_per_flush = 1U << 20;
  // Reads in flight for one call of Get.
  unsigned read_depth = 64;
};

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
