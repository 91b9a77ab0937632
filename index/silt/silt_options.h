// How a SILT index is made and opened. A plain value; Recovery::Begin refuses what makes no sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "index/silt/slot.h"

namespace siltfs {

struct SiltIndexOptions {
  std::string directory;
  bool read_only = false;

  // --- Of a new index; an old one keeps what it was made with ---

  // 2^partition_bits partitions. 0 to 12.
  unsigned partition_bits = 6;
  // A LogStore's table has 2^bucket_bits buckets of 4 entries; 1 to 15.
  unsigned bucket_bits = 11;
  // Slots of 2^slot_bits bytes, SlotLayout::kLeastBits to kMostBits; a chunk index has those of
  // kLeastBits, and nothing to put into larger ones.
  unsigned slot_bits = SlotLayout::kLeastBits;
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
  // Where entries are no hints (entry_owner.h), an index that has lost durable ones to damage is not
  // opened, lookups that meet such damage fail, and merges that meet it end all writing, unless
  // this says so.
  bool accept_lost_entries = false;
  // Section 4's synchronous mode: what was put is durable when Put returns.
  bool synchronous = false;
  // Everything is made durable after this many puts even if nobody flushes, so that little is to be
  // put again after a crash.
  uint64_t entries_per_flush = 1U << 20;
  // Reads in flight for one call of Get.
  unsigned read_depth = 64;
};

}  // namespace siltfs
