// Makes, lists and removes snapshots (fs/records/snapshot_record.h).
//
// A snapshot is a commit with a name: metadata keeps the values that the records had at this commit
// for as long as the snapshot needs them (fs/versions/version_key.h).
//
// Thread-safety: every call from any thread that may commit; see CommitPort::CommitNow. Errors:
// those of MetadataStore; kReadOnly if the store is read-only. Durability: changes are durable on
// the local disk on return; see MetadataStore::AwaitShipped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/records/hidden_range.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/version_release.h"
#include "fs/versions/version_restore.h"

namespace siltfs {

class SnapshotPort {
 public:
  virtual ~SnapshotPort() = default;

  // All snapshots, also those that are being removed, in the order of their numbers.
  virtual std::vector<NumberedSnapshot> Snapshots() const = 0;
  // kStale if there is no snapshot of this number, or if it is being removed.
  Result<NumberedSnapshot> FindSnapshot(uint64_t number) const;

  // Makes a snapshot of the state at the next commit, and commits. It includes all operations that
  // were applied or joined before the call, and perhaps later ones. kAlreadyExists if another
  // snapshot has the name. After another error there is no such snapshot, unless the store has
  // turned read-only: then the next opening shows whether it was made.
  //
  // `inode_limit` returns a number above those of all inodes so far. It is called on the commit
  // thread, with no lock held, when the group of the commit takes no more changes: so the snapshot
  // shows only inodes below, and changes of later inodes need no versions.
  virtual Result<NumberedSnapshot> CreateSnapshot(std::string name, int64_t created,
                                                  std::function<uint64_t()> inode_limit) = 0;
  // kAlreadyExists as CreateSnapshot; kNotFound if there is no such snapshot, or if it is being
  // removed.
  virtual Status RenameSnapshot(uint64_t number, std::string name) = 0;

  // The removal of a snapshot has three steps, so that no step takes long: BeginRemoval,
  // ReleaseSome until it returns false, EndRemoval. After BeginRemoval no view of the snapshot may
  // be used. After a crash the caller continues with BeginRelease. One removal at a time.
  virtual Status BeginRemoval(uint64_t number) = 0;
  virtual VersionRelease BeginRelease(uint64_t number) const = 0;
  // Removes at most `most` versions that only the removed snapshot needs. False at the end.
  virtual Result<bool> ReleaseSome(VersionRelease& release, size_t most) = 0;
  virtual Status EndRemoval(uint64_t number) = 0;

  // Makes the present records those of a snapshot: BeginRestore, RestoreSome until it returns
  // false, EndRestore. Versions of the present records are kept for the newest snapshot. Between
  // BeginRestore and EndRestore the present records are a mixture, so no operation may read or
  // change inodes; after a crash the caller continues with RestoreSome. The counters stay as they
  // are: the caller corrects them before EndRestore.
  //
  // BeginRestore keeps the present state as the snapshot `kept`, by the same write. All changes of
  // inodes must be committed. `created` and `inode_limit` are as for CreateSnapshot, and so are the
  // errors; kInvalidArgument if the snapshot `number` was received from another store.
  // RestoreSome calls `on_changed`, which may be empty, with the keys of changed records.
  virtual Result<NumberedSnapshot> BeginRestore(uint64_t number, std::string kept, int64_t created,
                                                uint64_t inode_limit) = 0;
  virtual Result<bool> RestoreSome(VersionRestore& restore, size_t most,
                                   const std::function<void(std::string_view key)>& on_changed) = 0;
  virtual Status EndRestore(uint64_t number) = 0;

  // Makes inodes visible that were hidden so far (fs/records/hidden_range.h): `publish` applies the
  // change. No snapshot is made meanwhile. Snapshots that were made while the inodes were hidden do
  // not show them. Errors: that of `publish`, and those of a write. The caller holds no lock that a
  // commit needs.
  virtual Status PublishHidden(const std::vector<HiddenRange>& ranges,
                               const std::function<Status()>& publish) = 0;
};

// kInvalidArgument if the live files cannot be rolled back to this snapshot, because it was
// received.
Status CheckRestorable(const SnapshotRecord& snapshot);

}  // namespace siltfs
