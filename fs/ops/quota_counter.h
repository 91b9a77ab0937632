// Counts the inodes below a directory for a new quota, while operations run.
//
// The count begins with the number of the new quota in the record of the directory, and follows the
// tree downwards: first a directory gets the number, then its entries are read. So an inode that is
// made in a directory whose entries were read has inherited the number, and one that is moved there
// gets it from the rename (quota_moves.h). Each inode gets the number and is counted in one change,
// under its lock. From then on, operations count its changes. So at every moment the usage of the
// quota in memory is exactly that of the inodes with its number, and at the end these are all
// inodes below the directory.
//
// Until the end the quota has no records in metadata. So a crash, an error or a rollback leaves
// numbers without a meaning, and no quota.
//
// Thread-safety: one call at a time. The caller has no Pass of the gate. Memory: 8 bytes for each
// directory that was found and not read. Errors: those of metadata; those of `check`; kAborted if a
// rollback has ended the count.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/store_context.h"

namespace siltfs {

class QuotaCounter {
 public:
  // The arguments must outlive it. Counts inodes in `counted`.
  QuotaCounter(const StoreContext& store, OperationGate& gate, InodeStore& inodes,
               ChangeApplier& changes, std::atomic<uint64_t>& counted)
      : store_(store), gate_(gate), inodes_(inodes), changes_(changes), counted_(counted) {}

  // Quotas::BeginCount must have been called. May be called again to count directories that were
  // moved since it has returned.
  Status Count(InodeNumber directory, QuotaNumber quota, const std::function<Status()>& check);
  // The same with the caller's Closure of the gate.
  Status CountMoved(QuotaNumber quota);

 private:
  struct Child {
    InodeNumber inode = 0;
    uint64_t cookie = 0;
  };
  // Gives numbers to some entries of the directory, or to none.
  using EnterSome = std::function<Status(const Child* first, size_t count)>;

  Status CountAll(QuotaNumber quota, const EnterSome& enter_some);
  Status CountEntries(InodeNumber directory, const EnterSome& enter_some);
  Result<std::vector<Child>> NextChildren(InodeNumber directory, uint64_t first_cookie) const;
  Status CheckCounting(QuotaNumber quota) const;
  Status EnterAll(const Child* first, size_t count, QuotaNumber quota);
  Status Enter(InodeNumber number, QuotaNumber quota);

  const StoreContext& store_;
  OperationGate& gate_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  std::atomic<uint64_t>& counted_;
  std::vector<InodeNumber> waiting_;  // directories that have the number, to be read
};

}  // namespace siltfs
