// Finds the changes that make the present records those that a snapshot shows (version_key.h).
//
// A key that has changed since the snapshot has a version for it, which is the value to restore.
// All inodes of the lineage at or above the snapshot's limit are newer, and are removed. An inode
// that had no name any more when the snapshot was made, because a program had it open, is removed,
// too.
//
// The same restore may begin again after a crash at any point: the versions remain, and keys that
// have the right value already are passed. The caller keeps the present values for a newer snapshot
// in the same writes (VersionKeeper). These new versions are not found, because they were born
// later. The cost is proportional to the changes since the snapshot.
//
// Thread-safety: one thread at a time. Memory: one batch. Errors: those of the key-value store;
// kCorruption for malformed records. Durability: the caller writes the batches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/records/inode_record.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {

class VersionRestore {
 public:
  // Number and limit of a state without inodes: Next removes all records of the lineage.
  static SnapshotBounds Empty(LineageNumber lineage);

  // `on_dropped` is called for each inode without a name that the snapshot has. The counters of the
  // snapshot count it, but not those of the restored state.
  VersionRestore(const SnapshotBounds& snapshot,
                 std::function<void(const InodeRecord&)> on_dropped);

  LineageNumber lineage() const { return snapshot_.lineage; }
  // Appends at most `most` mutations to `batch`. Returns false at the end. `present` must include
  // the earlier batches.
  Result<bool> Next(const KvSnapshot& present, size_t most, std::vector<Mutation>& batch);

 private:
  Result<bool> NextVersion(const KvSnapshot& present, size_t most, std::vector<Mutation>& batch);
  Result<bool> NextNewer(const KvSnapshot& present, size_t most, std::vector<Mutation>& batch);
  // The value that the key must get.
  Result<std::optional<std::string>> Wanted(const KvSnapshot& present, std::string_view key,
                                            SnapshotNumber kept_for);
  // Whether the snapshot shows this inode, and it has a name there.
  Result<bool> IsKept(const KvSnapshot& present, uint64_t inode);

  const SnapshotBounds snapshot_;
  const std::function<void(const InodeRecord&)> on_dropped_;
  std::string from_;   // the next entry in the list of versions
  size_t table_ = 0;   // the next table of which newer inodes are removed
  std::string newer_;  // the next key in this table
  bool versions_done_ = false;
  uint64_t inode_ = 0;  // the inode that IsKept was called for last; 0: none
  bool kept_ = false;
};

// The bytes of all keys and values that a restore would write, with the versions of the present
// records. Reads as many records as the restore does. `present` does not change meanwhile.
Result<uint64_t> BytesOfRestore(const KvSnapshot& present, const SnapshotBounds& snapshot);

}  // namespace siltfs
