// The inodes of a store: finds an inode's object in memory, and loads its state from metadata.
//
// Thread-safety: every call from any thread. Functions that take an Inode require that the caller
// holds its lock exclusively. Ownership: the objects are shared with their users. Errors: kStale if
// there is no such inode, kCorruption for malformed records, else those of metadata. Durability:
// nothing becomes durable here.
#pragma once

#include <functional>
#include <vector>

#include "fs/content/overlay_memory.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/hidden_inodes.h"
#include "fs/inodes/inode_table.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"

namespace siltfs {

// The attributes of a loaded inode.
Attributes AttributesOf(const Inode& inode);
// kIsADirectory or kInvalidArgument unless the inode is a regular file.
Status CheckRegular(const InodeRecord& record);

class InodeStore {
 public:
  static constexpr size_t kCachedInodes = 4096;

  // The arguments must outlive it. `cached`: the number of unused inodes that stay in memory.
  InodeStore(const StoreContext& store, ChangeApplier& changes, OverlayMemory& overlay_memory,
             size_t cached = kCachedInodes);

  // The one object of this inode, loaded or not.
  InodePtr Get(InodeNumber number) { return table_.Get(number); }
  // All inodes in memory at this moment.
  std::vector<InodePtr> Snapshot() const { return table_.Snapshot(); }
  // Forgets the object of a removed inode.
  void Erase(InodeNumber number) { table_.Erase(number); }
  // The inodes that exist in metadata but not for operations: loading one of them returns kStale.
  HiddenInodes& hidden() { return hidden_; }

  // Call it for the object of a new inode, with its record, which metadata does not have yet.
  void SetLoaded(Inode& inode);

  // Both load the inode if it is not loaded; LoadContent also loads its overlay. A dirty inode
  // stays dirty.
  Status LoadRecord(Inode& inode);
  Status LoadContent(Inode& inode);
  // Like LoadRecord and LoadContent, but also save the deferred changes of a dirty inode, so that
  // metadata has its newest state.
  Status LoadAndFlush(Inode& inode);
  Status LoadContentAndFlush(Inode& inode);
  // Loads the inode, with its overlay if `overlay` is true. Then calls `use` with the inode locked
  // in shared mode.
  Status WithLoaded(InodeNumber number, bool overlay,
                    const std::function<Status(const Inode&)>& use);
  Result<Attributes> GetAttributes(InodeNumber number);

 private:
  const StoreContext& store_;
  ChangeApplier& changes_;
  OverlayMemory& overlay_memory_;
  InodeTable table_;
  HiddenInodes hidden_;
};

}  // namespace siltfs
