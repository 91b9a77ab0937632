// The manifest of a SILT index. It lists the HashStores and SortedStores, the first log and page of
// each partition that were not converted yet, and the sequence up to which all entries are durable.
// Without the manifest the other files have no meaning. On flash it consists of a base, which is
// replaced atomically, and of edits (manifest_log.h); this header has the base. A log needs no
// entry in the manifest. A log is used if its id is not below its partition's first_log_id, and its
// pages continue where the previous log ended. Format: docs/format.md, "SILT manifest".
//
// Durability: WriteManifestBase returns OK when the base and the names of files made before it are
// durable. After kNoSpace the old base is in place, after another error either the old or the new
// one. Functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "index/flash/slot.h"
#include "store/env/env.h"

namespace siltfs {

// One partition's stores, and the start of its logs that are not yet converted.
struct PartitionRecord {
  uint64_t first_log_id = 0;  // logs with smaller ids are converted
  uint32_t first_page = 0;    // the number of the first page of the first log
  // The pages from first_page to before this number are durable. If one is missing, that is damage.
  uint32_t durable_page = 0;
  // All entries put with sequences up to this one are in this partition's converted logs.
  uint64_t complete_sequence = 0;
  std::vector<uint64_t> hash_ids;  // of the HashStores, oldest first, rising
  uint64_t sorted_id = 0;          // of the SortedStore; 0: none

  friend bool operator==(const PartitionRecord&, const PartitionRecord&) = default;
};

struct StoreManifest {
  NameHash name_hash;
  unsigned bucket_bits = 0;     // of the LogStores' tables
  unsigned partition_bits = 0;  // 2^bits partitions
  SlotLayout layout = kChunkSlots;
  uint64_t generation = 0;  // of the base; edits belong to the base of their generation
  // All entries put with sequences up to this one are in durable pages and stores.
  uint64_t complete_sequence = 0;
  // Ids are never reused in an index. A log is created without a new manifest, so some logs may
  // have this id or a greater one.
  uint64_t next_id = 1;
  // True if a merge or conversion has found damaged pages, so that their entries are lost.
  bool entries_lost = false;
  std::vector<PartitionRecord> partitions;  // 2^partition_bits

  friend bool operator==(const StoreManifest&, const StoreManifest&) = default;
};

std::string EncodeStoreManifest(const StoreManifest& manifest);
// kCorruption if the bytes are not as EncodeStoreManifest writes them, kNeedsNewer for a later
// version.
Result<StoreManifest> DecodeStoreManifest(ByteView bytes);

// Reads the base; empty if there is none.
Result<std::optional<StoreManifest>> ReadManifestBase(Env& env, const std::string& directory);
Status WriteManifestBase(Env& env, const std::string& directory, const StoreManifest& manifest);

}  // namespace siltfs
