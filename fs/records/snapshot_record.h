// A snapshot: the state of all inodes as of one commit, under a name. The value of
// SnapshotKey(number). Encoding: docs/format.md, "Snapshot".
//
// Thread-safety: as for plain values. Errors: kCorruption for a malformed record.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/records/snapshot_id.h"
#include "store/base/result.h"

namespace siltfs {

// Snapshots have numbers below this limit, because a mount shows the numbers in the upper bits of
// inode numbers (fs/interface/snapshot_inode.h).
inline constexpr uint64_t kSnapshotNumberLimit = uint64_t{1} << 20;

struct SnapshotRecord {
  std::string name;           // unique among the snapshots that are not being removed
  int64_t created = 0;        // nanoseconds since 1970
  uint64_t commit = 0;        // the number of the commit that made it
  uint64_t inode_limit = 0;   // it has no inode at or above this number
  bool removing = false;      // deleted; versions that it needed may still exist
  bool restoring = false;     // the present records are being changed to those of this snapshot
  int64_t logical_bytes = 0;  // the counters as of the commit (schema.h)
  int64_t files = 0;
  int64_t directories = 0;
  int64_t chunk_references = 0;
  // Of a received snapshot: its lineage (lineage.h), and the identity of the snapshot that was
  // sent. The limit of its inodes is that of the sender.
  uint64_t lineage = 0;
  SnapshotId source = {};

  bool operator==(const SnapshotRecord&) const = default;

  std::string Encode() const;
  static Result<SnapshotRecord> Decode(std::string_view value);
};

struct NumberedSnapshot {
  uint64_t number = 0;  // later snapshots have greater numbers
  SnapshotRecord record;

  bool operator==(const NumberedSnapshot&) const = default;
};

// All snapshots, also those that are being removed, in the order of their numbers.
Result<std::vector<NumberedSnapshot>> ReadSnapshots(const KvSnapshot& metadata);
// Like ReadSnapshots, but leaves out malformed records. For checks and repairs.
Result<std::vector<NumberedSnapshot>> ReadIntactSnapshots(const KvSnapshot& metadata);
// The number of the next snapshot.
Result<uint64_t> ReadNextSnapshot(const KvSnapshot& metadata);
std::string EncodeNextSnapshot(uint64_t number);

}  // namespace siltfs
