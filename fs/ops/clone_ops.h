// Clones of trees (EntryStore::Clone).
//
// A clone copies the records of one commit to hidden inodes (tree_copy.h). At the end one change
// makes them visible: it adds the name, and the counts of all new inodes. Until then an operation
// does not see them, and a crash or a failure leaves only records that the next mount removes.
//
// Why garbage collection loses no chunk of a clone: a clone holds a ChunkStore::Use from before its
// commit until its name is applied. The collector makes segments victims, waits for all Uses,
// commits, and marks what that commit refers to. It holds ChunkStore::mark_begin from the wait to
// the commit, and so does the clone while it takes its Use and commits. So either the collector
// waits for the whole clone, and its commit has the clone's references; or the clone's commit is
// not older than the collector's, and refers to no chunk that the collector has found dead.
// (Without this lock the clone could copy a reference from a commit that is older than the
// collector's, to a file that was removed between the two.)
//
// Thread-safety: every call from any thread. Errors: those of EntryStore. Durability: that of
// operations.
#pragma once

#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/meta/id_allocator.h"
#include "fs/ops/directory_names.h"
#include "fs/ops/hidden_writer.h"
#include "fs/ops/tree_copy.h"

namespace siltfs {

class CloneOps {
 public:
  // The arguments must outlive it. `ids` is null when read-only.
  CloneOps(const StoreContext& store, IdAllocator* ids, InodeStore& inodes, ChangeApplier& changes,
           DirectoryNames& names)
      : store_(store), ids_(ids), inodes_(inodes), changes_(changes), names_(names) {}

  // The source may be an inode of a snapshot, which must not be removed during the call.
  Result<CloneOutcome> Clone(const CloneRequest& request);

 private:
  // The state that the request's source is in, as of now.
  Result<std::shared_ptr<const KvSnapshot>> StateOf(const SnapshotInode& source);
  Status CheckBegin(const CloneRequest& request);
  Result<CloneOutcome> CloneFrom(const KvSnapshot& state, const CloneRequest& request);
  Status Publish(const CloneRequest& request, const TreeCopy& copy, const TreeCopy::Root& root,
                 HiddenWriter& writer);

  const StoreContext& store_;
  IdAllocator* const ids_;
  InodeStore& inodes_;
  ChangeApplier& changes_;
  DirectoryNames& names_;
};

}  // namespace siltfs
