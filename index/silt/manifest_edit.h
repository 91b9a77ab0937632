// Edits of a SILT index's manifest. An edit gives the new values of the partitions that a
// conversion, a merge or a flush has changed, so its size does not depend on the number of stores.
// Format: docs/format.md, "SILT manifest edits".
//
// Functions only, safe to call from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "index/silt/store_manifest.h"

namespace siltfs {

struct PartitionEdit {
  uint32_t partition = 0;
  // The new values of the partition's record.
  uint64_t first_log_id = 0;
  uint32_t first_page = 0;
  uint32_t durable_page = 0;
  uint64_t complete_sequence = 0;
  uint64_t sorted_id = 0;
  uint32_t merged = 0;                 // number of HashStores that are removed: the oldest ones
  std::vector<uint64_t> new_hash_ids;  // HashStores that are added, oldest first

  friend bool operator==(const PartitionEdit&, const PartitionEdit&) = default;
};

struct ManifestEdit {
  // The new values of the manifest.
  uint64_t complete_sequence = 0;
  uint64_t next_id = 0;
  bool entries_lost = false;
  std::vector<PartitionEdit> partitions;  // in order, each partition at most once

  friend bool operator==(const ManifestEdit&, const ManifestEdit&) = default;
};

// An edit that changes nothing, to be filled in.
ManifestEdit EditOf(const StoreManifest& manifest);
// The edit's change of a partition. If there is none, adds one with the partition's present values.
// The reference is valid until the next call.
PartitionEdit& ChangeOf(uint32_t partition, const StoreManifest& manifest, ManifestEdit& edit);

// Returns kCorruption if Apply would not make a valid manifest.
Status CheckEdit(const ManifestEdit& edit, const StoreManifest& manifest);
// Changes the manifest as the edit says, which CheckEdit must have accepted.
void Apply(const ManifestEdit& edit, StoreManifest& manifest);

std::string EncodeManifestEdit(const ManifestEdit& edit);
// kCorruption if the bytes are not as EncodeManifestEdit writes them.
Result<ManifestEdit> DecodeManifestEdit(ByteView bytes);

}  // namespace siltfs
