// Collects changes of versions (fs/versions/version_key.h), for repairs of contents.
//
// Not thread-safe. Memory: the changes. Errors: those of the key-value store. Durability: the
// caller writes the changes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "fs/versions/snapshot_paths.h"

namespace siltfs {

// The value of a record of this file: the live one, or the version for the file's snapshot. nullopt
// if there is none, or if the version is malformed.
Result<std::optional<std::string>> ReadVersion(const KvSnapshot& metadata, const std::string& key,
                                               const FileVersion& file);

class VersionEdit {
 public:
  // `metadata` must outlive this object.
  explicit VersionEdit(const KvSnapshot& metadata) : metadata_(metadata) {}

  // Replaces the version of `key` for this snapshot.
  void Put(const std::string& key, SnapshotNumber snapshot, std::string_view value);
  // Makes a part of the version of `whole` for this snapshot into a version of `key`. The snapshots
  // that this version of `whole` serves show the part. Older snapshots show of `key` what they
  // showed before.
  Status PutPart(const std::string& key, const std::string& whole, SnapshotNumber snapshot,
                 std::string_view value);

  std::vector<Mutation> Take();

 private:
  // The snapshot of the next older version of the key; 0 if there is none.
  Result<SnapshotNumber> NextOlder(const std::string& key, SnapshotNumber snapshot) const;

  const KvSnapshot& metadata_;
  std::map<std::string, std::string> changes_;  // by version key
};

}  // namespace siltfs
