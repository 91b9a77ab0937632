// Which quota an inode counts against when it gets another name.
//
// An inode has the number of its quota in its record (docs/quotas.md). So a rename or a link must
// not lead from one quota to another. While the inodes below a directory are counted for a new
// quota, some of them have its number already, and others do not have it yet. For names, all of
// them belong to the new quota.
//
// Thread-safety: every call from any thread. The caller holds a Pass of the gate, and the locks of
// the inodes that it passes, which must be loaded. Errors: kOtherQuota if the quotas differ; those
// of metadata. Without a quota that is being counted there is no I/O.
#pragma once

#include "fs/inodes/change.h"
#include "fs/inodes/store_context.h"
#include "fs/ops/directory_names.h"

namespace siltfs {

// The quota that inodes in this directory count against, or will count against when they are
// counted.
Result<QuotaNumber> QuotaBelow(const StoreContext& store, const DirectoryNames& names,
                               const Inode& directory);
// Whether a name may move from one directory to the other one.
Status CheckSameQuota(const StoreContext& store, const DirectoryNames& names, const Inode& from,
                      const Inode& to);
// Whether the inode may get a name in the directory. While inodes are counted, a file without a
// quota may.
Status CheckLinkQuota(const StoreContext& store, const DirectoryNames& names, const Inode& inode,
                      const Inode& directory);
// Counts an inode that gets a name in the directory, if the count has passed the directory and has
// not yet reached the inode. Call it after all checks and before the inode is saved; its
// content must have no deferred changes.
void CountMoved(const StoreContext& store, const Inode& directory, Inode& inode, Change& change);

// What the inode adds to the usage of its quota.
QuotaUsage UsageOf(const InodeRecord& record);

}  // namespace siltfs
