// How a SILT index is made and opened. A plain value; Recovery::Begin rejects invalid options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "index/flash/slot.h"
#include "index/silt/page_index.h"

namespace siltfs {

inline constexpr std::string_view kSiltEngineName = "silt";
inline constexpr unsigned kDefaultPartitionBits = 6;
inline constexpr unsigned kDefaultBucketBits = 11;

// 5.4 times the 32 bytes of a name and a location, with HashStores. The filters of sorted runs take
// less memory, so they get a larger share and write less: 5 times the 32 bytes.
inline constexpr double kBytesPerPutOfHashStores = 172;
inline constexpr double kBytesPerPutOfRuns = 160;

struct SiltIndexOptions {
  std::string directory;
  bool read_only = false;

  // --- For a new index; an existing one keeps its values ---

  // 2^partition_bits partitions. 0 to 12.
  unsigned partition_bits = kDefaultPartitionBits;
  // A LogStore's table has 2^bucket_bits buckets of 4 entries; 1 to 15. New tables are larger in an
  // index of many entries, so that the number of HashStores stays bounded.
  unsigned bucket_bits = kDefaultBucketBits;
  // A chunk index may also have the smallest named slots, as in the paper; they take more flash,
  // memory and writes.
  SlotLayout layout = kChunkSlots;
  // How many bits of the names' hashes count (NameHash). With fewer than 64 bits, many names share
  // an entry; tests need this.
  unsigned hash_bits = NameHash::kAllBits;
  // Drawn from Env::FillRandom if not given; set by tests that pin the format.
  std::optional<uint64_t> hash_secret = std::nullopt;

  // --- For this opening ---

  // A LogStore is frozen at this many pages of 4 KiB even if its table has room. The reason is that
  // names that are put repeatedly fill the log but not the table.
  uint32_t max_log_pages = 4096;
  // Pages of 4 KiB of a log that are written at once.
  uint32_t write_batch_pages = 2;
  // Bytes that a put may write, in all, in an index of constant size, without the few that
  // BytesPerPut leaves out. The share of the entries that merges leave in HashStores follows from
  // this number (merge_policy.h). If it is not set, it is one of the two constants above.
  std::optional<double> bytes_per_put = std::nullopt;
  // If the filters of HashStores do not fit into memory, merges come earlier, until a put writes
  // this many bytes: ten times the 32 bytes of a name and its location.
  double most_bytes_per_put = 320;
  // If set, the share itself.
  std::optional<double> hash_store_share = std::nullopt;
  // A partition with more than this many HashStores is merged, because a lookup may read each of
  // them without finding its name (read amplification). Puts wait when a partition has a quarter
  // more.
  unsigned max_hash_stores = 160;
  // Puts wait when this many LogStores are frozen and not yet converted.
  unsigned max_frozen_logs = 8;
  // Memory for sorting HashStores, with tables of kDefaultBucketBits or less; more with larger
  // ones.
  size_t sort_memory_bytes = 768U << 10;
  // Rate limit of conversions and merges; 0: none.
  uint64_t background_bytes_per_second = 0;
  // Of the SortedStores that merges write; older ones keep theirs. Named slots have tries.
  PageIndexKind page_index = PageIndexKind::kBounds;
  // Whether conversions write sorted runs (run_store.h) or the paper's HashStores; existing stores
  // keep their kind. Named slots have HashStores.
  bool sorted_runs = true;
  // Whether merges write filters of SortedStores. If not set, they do if memory has room for them.
  std::optional<bool> sorted_filters = std::nullopt;
  // If true, conversions and merges run in a thread of the index. If false, the calls that write
  // run them, for tests that need a fixed order of device calls.
  bool background = true;
  // Initial memory limit; SetMemoryLimit changes it.
  uint64_t memory_limit = kNoMemoryLimit;
  // If true, opening returns before logs have been replayed. A lookup then waits for the partitions
  // that it needs, and other calls wait for all partitions. If false, opening returns when only
  // filters and tries remain to be read. After a write failure during recovery, also on a full
  // disk, the index must be opened again.
  bool serve_early = false;
  // Used if entries are not hints (entry_owner.h). If true, the index continues although damage has
  // destroyed durable entries. If false, an index that is known to have lost entries is not opened,
  // a lookup that finds damage fails, and a merge that finds damage ends all writing.
  bool accept_lost_entries = false;
  // Section 4's synchronous mode: entries are durable when Put returns.
  bool synchronous = false;
  // Everything is made durable after this many puts even without a Flush, so that few puts must be
  // repeated after a crash.
  uint64_t entries_per_flush = 1U << 20;
  // Reads in flight for one Get call.
  unsigned read_depth = 64;
};

}  // namespace siltfs
