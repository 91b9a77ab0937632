// The steps of a rollback (Snapshots::RollBack): changes all live inodes to what a snapshot shows,
// while no operation uses inodes.
//
// While the store is mounted, the kernel knows names, attributes and contents. It forgets the
// content and the attributes of inodes before operations go on. It forgets names only afterwards,
// because a thread of the kernel may hold the lock of a directory while its request waits for the
// end of the rollback. The kernel keeps the sizes of files with its inodes; rolled_back_inodes.h
// says how it gets new inodes. Until the names are forgotten, a name may lead to the inode that had
// it before, and a file that is not opened may show the size that it had.
//
// Thread-safety: one thread at a time. Ownership: borrows its arguments. Memory: the changed names
// and inodes that the kernel has looked up and not forgotten. Errors: those of metadata.
// Durability: durable after Restore.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/kernel_cache.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"

namespace siltfs {

// What the kernel may know of the changed records.
class RestoredRecords {
 public:
  // `before` has the records before the rollback.
  RestoredRecords(const LookupCounts& lookups, std::shared_ptr<const KvSnapshot> before)
      : lookups_(lookups), before_(std::move(before)) {}

  void Add(std::string_view key);
  // Call it before operations go on.
  void ForgetInodes(KernelCache& cache) const;
  // Finds the inodes that get a new generation. `restored` has the records after the rollback.
  Status FindRenewed(const KvSnapshot& restored);
  const std::vector<uint64_t>& renewed() const { return renewed_; }
  // Also renews inodes that were removed before.
  void AddRemoved(const std::vector<uint64_t>& inodes) {
    renewed_.insert(renewed_.end(), inodes.begin(), inodes.end());
  }
  // Adds the unchanged names of changed files. Call it after FindRenewed, with the same records.
  // The cost is proportional to the names in the directories of these files. If a file has several
  // names, it is proportional to the names in all directories that the kernel knows.
  Status AddNamesOfFiles(const KvSnapshot& restored);
  // Call it after operations may go on.
  void ForgetNames(KernelCache& cache) const;

 private:
  struct ChangedInode {
    bool names = false;  // whether its names have changed
    // Whether it is a directory or a regular file. The kernel must not forget the target of a
    // symbolic link while operations are kept out: it would wait for a request to read the target.
    // A target never changes.
    bool has_pages = false;
  };
  struct ChangedFile {
    uint64_t parent = 0;      // of one of its names; a hint
    uint32_t names_left = 0;  // that were not found yet
  };
  bool IsKnown(uint64_t inode) const;
  bool HasPages(uint64_t inode) const;
  // Adds the names in these directories that lead to a file of files_.
  Status AddNamesIn(const std::set<uint64_t>& directories, KvIterator& names);

  const LookupCounts& lookups_;
  const std::shared_ptr<const KvSnapshot> before_;
  std::map<uint64_t, ChangedInode> inodes_;
  std::vector<NamePlace> names_;
  std::vector<uint64_t> renewed_;
  std::map<uint64_t, ChangedFile> files_;
};

class Rollback {
 public:
  Rollback(const StoreContext& store, OperationGate& gate, InodeStore& inodes,
           InodeLifetimes& lifetimes)
      : store_(store), gate_(gate), inodes_(inodes), lifetimes_(lifetimes) {}

  // kNoSpace if the disk may not have room for the records that the rollback would write. A
  // rollback that runs out of room in the middle makes the store unusable until there is room.
  Status CheckRoom(const NumberedSnapshot& wanted) const;
  // Keeps operations out, at a time when no inode is open. The kernel reports some milliseconds
  // late that a program has closed a file, so this waits for a while. kInUse if an inode stays open
  // or an operation does not end.
  Result<OperationGate::Closure> AwaitNothingOpen();
  // Removes the inodes that have no name, commits all changes, and returns the removed inodes,
  // which the kernel may still know. Call it with the closure.
  Result<std::vector<uint64_t>> CommitInodes();
  // Changes the records to what the snapshot shows, which BeginRestore was called for. Calls
  // `on_changed` with the key of each changed record. After an error the records are a mixture of
  // two states; the next opening for writing completes the rollback.
  Status Restore(const NumberedSnapshot& wanted,
                 const std::function<void(std::string_view key)>& on_changed);

 private:
  Status CheckNothingOpen() const;

  const StoreContext& store_;
  OperationGate& gate_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
};

}  // namespace siltfs
