// A store with snapshots, which tests damage, check and repair.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fs/records/snapshot_record.h"
#include "fs/versions/version_key.h"
#include "store/base/chunk_name.h"
#include "store/segment/block_head.h"
#include "tests/fs/check/checked_store.h"

namespace siltfs::testing {

using Files = std::map<std::string, Bytes>;  // contents, by path

// A store with the snapshots "monday" (number 1) and "tuesday" (number 2). Both show some files of
// which the live file system has other contents, or none.
class SnapshotStore {
 public:
  static constexpr uint64_t kMonday = 1;
  static constexpr uint64_t kTuesday = 2;

  // Makes the store, and unmounts it.
  SnapshotStore();

  CheckedStore& checked() { return checked_; }
  CheckOutcome Check(bool data = false) { return checked_.Check(data); }

  // All files of a snapshot, or of the live file system if `snapshot` is empty.
  Files Read(const std::string& snapshot);
  // Requires that the live file system and both snapshots have their files.
  void RequireFiles();

  // What RequireFiles requires.
  Files live;
  Files monday;
  Files tuesday;

  // Inodes.
  InodeNumber changed = 0;    // "changed", with other contents in each state
  InodeNumber same = 0;       // "same", which never changed after "monday"
  InodeNumber directory = 0;  // "directory", with "entry", which was renamed after "monday"

  std::string Version(const std::string& key, uint64_t snapshot);
  void PutVersion(const std::string& key, uint64_t snapshot, uint64_t born,
                  const std::optional<std::string>& value);
  SnapshotRecord Record(uint64_t snapshot);
  void PutRecord(uint64_t snapshot, const SnapshotRecord& record);
  // The chunks of a file with a small recipe: of the live file, or of its version for a snapshot.
  std::vector<ChunkName> ChunksOf(InodeNumber inode, uint64_t snapshot = 0);
  // Damages the payload of the block that holds the chunk.
  void DamageChunk(const ChunkName& name);

 private:
  CheckedStore checked_;
};

}  // namespace siltfs::testing
