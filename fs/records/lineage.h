// Lineages: states of other stores that this store has received.
//
// The records of a received snapshot lie in the same tables as those of the live files, but their
// keys have inode numbers of another range. The number of the lineage is in the upper bits of the
// key's inode number, and the inode number of the sender in the lower ones. Lineage 0 is the live
// files. Inode numbers in values are those of the sender. A lineage holds one state, its *head*,
// and versions for its snapshots, as the live files do (fs/versions/version_key.h). Encoding:
// docs/format.md, "Lineage".
//
// Thread-safety: pure functions, and plain values. Errors: kCorruption for malformed records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fs/kv/kv_store.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_id.h"
#include "store/base/result.h"

namespace siltfs {

using LineageNumber = uint64_t;
inline constexpr LineageNumber kLiveLineage = 0;

// The inode numbers of a store, and of each lineage, are below this limit.
inline constexpr uint64_t kInodesPerLineage = uint64_t{1} << 43;
inline constexpr LineageNumber kLineageLimit = uint64_t{1} << 20;

// The lineage to which a key of this inode number belongs, and the number without the lineage.
inline LineageNumber LineageOf(uint64_t key_inode) { return key_inode / kInodesPerLineage; }
inline uint64_t WithoutLineage(uint64_t key_inode) { return key_inode % kInodesPerLineage; }
// The inode number in keys. `inode` is below kInodesPerLineage.
inline uint64_t InLineage(LineageNumber lineage, uint64_t inode) {
  return lineage * kInodesPerLineage + inode;
}
// All keys of a lineage in a table of kTablesOfInodes.
inline KeyRange RangeOfLineage(Table table, LineageNumber lineage) {
  return RangeOf(table, InLineage(lineage, 0), InLineage(lineage + 1, 0));
}

// A snapshot that is being received.
struct IncomingSnapshot {
  SnapshotId id;
  std::optional<SnapshotId> base = {};
  std::string name;          // as the stream names it
  uint64_t inode_limit = 0;  // without the lineage
  std::string position;      // where the sender shall go on (fs/stream/stream_messages.h)

  bool operator==(const IncomingSnapshot&) const = default;
};

// The value of LineageKey.
struct LineageRecord {
  // The head differs from the newest snapshot of the lineage: a snapshot is being received, or the
  // head is to be restored. A lineage without snapshots and without this mark does not exist.
  bool changed = false;
  std::optional<IncomingSnapshot> incoming = {};

  bool operator==(const LineageRecord&) const = default;

  std::string Encode() const;
  static Result<LineageRecord> Decode(std::string_view value);
};

using Lineages = std::map<LineageNumber, LineageRecord>;

Result<Lineages> ReadLineages(const KvSnapshot& metadata);

}  // namespace siltfs
