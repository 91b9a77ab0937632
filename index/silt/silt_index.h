// SILT (Lim et al., SOSP 2011): a chunk index on flash in a series of stores, from one that is
// quick to write to ones that need little memory. Names are put into the LogStore (section 3.1); a
// full LogStore is frozen and a new one begun. A lookup asks the stores from the newest to the
// oldest. docs/format.md describes the files.
//
// Thread-safety, errors, durability: index/chunk_index.h. Lookups hold no lock while they read
// flash. A LogStore is synced when it is frozen; durable_sequence() moves with that, and with
// Flush. When the disk is full Put and Flush fail with kNoSpace and may be repeated when it no
// longer is; after any other failure to write they fail for good, as what the device then holds is
// unknown. Units: a frozen LogStore keeps its table, 6.5 bytes an entry.
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

  // A LogStore's table has 2^bucket_bits buckets of 4 entries; 1 to 15. Applies to LogStores begun
  // from now on.
  unsigned bucket_bits = 15;
  // A LogStore is frozen at this many pages of 4 KiB even if its table has room: names put again
  // and again fill a log but no table.
  uint32_t max_log_pages = 4096;
  // How much is written at once, in pages of 4 KiB.
  uint32_t write_batch_pages = 32;
  // Of a new index; drawn from Env::FillRandom if not given. For tests that pin the format.
  std::optional<uint64_t> hash_secret = std::nullopt;
};

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options);

}  // namespace siltfs
