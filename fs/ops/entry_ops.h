// Whole entries: inode, attributes, content and name in one operation (fs/interface/entry_store.h).
//
// The content of a new file is cut and put before any lock is taken. Then the directory is locked,
// and one Change makes the inode, the name and the source record. A new inode needs no lock: no
// other thread knows its number before the Change is applied.
//
// Thread-safety: every call from any thread. Errors: those of EntryStore. Durability: none; changes
// are durable with their commit.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "chunker/chunker.h"
#include "fs/content/file_content.h"
#include "fs/inodes/change.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/entry_store.h"
#include "fs/meta/id_allocator.h"
#include "fs/ops/clone_ops.h"
#include "fs/ops/directory_names.h"
#include "fs/ops/fold_ops.h"

namespace siltfs {

class EntryOps final : public EntryStore {
 public:
  // The arguments must outlive it. `ids` is null when read-only.
  EntryOps(const StoreContext& store, const FileContent& content, IdAllocator* ids,
           InodeStore& inodes, InodeLifetimes& lifetimes, ChangeApplier& changes,
           DirectoryNames& names, FoldOps& folds, CloneOps& clones)
      : store_(store),
        content_(content),
        ids_(ids),
        inodes_(inodes),
        lifetimes_(lifetimes),
        changes_(changes),
        names_(names),
        folds_(folds),
        clones_(clones) {}

  std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) override;
  Result<PutOutcome> Offer(const EntryImage& image, InodeNumber reference,
                           bool probably_new) override;
  Result<PutOutcome> Place(InodeNumber temporary, const EntryImage& image) override;
  Result<PutOutcome> Link(InodeNumber inode, InodeNumber parent, std::string_view name) override;
  Result<bool> SetDirectory(InodeNumber directory, const EntryImage& image) override;
  Result<CloneOutcome> Clone(const CloneRequest& request) override {
    return clones_.Clone(request);
  }
  bool MayBeCached(InodeNumber inode) const override {
    return inode == kRootInode || lifetimes_.lookups().Of(inode) > 0;
  }

 private:
  // A name in a directory, and the inode that has it. Both are locked and loaded.
  struct NamePlace {
    Inode& directory;
    std::optional<NameEntry> entry;
    Inode* old = nullptr;  // null if the name is free
  };
  using UsePlace = std::function<Result<PutOutcome>(const NamePlace& place)>;

  // Locks the directory, the inode that has the name, and `other` if it is not null; then calls
  // `use`.
  Result<PutOutcome> AtName(InodeNumber parent, std::string_view name, const InodePtr& other,
                            const UsePlace& use);
  // Adds the entry of `inode`, in the place of the old inode if there is one, and applies the
  // change, which includes the inode.
  Result<PutOutcome> Enter(const NamePlace& place, std::string_view name, Inode& inode, int64_t now,
                           Change& change);
  // As Enter, for a new inode, which counts against the quota of the directory.
  Result<PutOutcome> EnterNew(const NamePlace& place, std::string_view name, Inode& inode,
                              int64_t now, Change& change);
  // Makes an inode with all its content count against this quota.
  Result<Quotas::Reservation> MoveToQuota(QuotaNumber quota, Inode& inode, Change& change);
  Result<PutOutcome> PutOne(const EntryImage& image, const Recipe& recipe);
  // Whether the old inode is what the image describes. If it is a regular file, its content must be
  // the recipe.
  Result<bool> IsSame(const EntryImage& image, const Recipe& recipe, const Inode& old) const;
  // Keeps the source facts of an entry that is otherwise unchanged.
  Status RenewSource(const EntryImage& image, Inode& inode);
  Result<PutOutcome> Share(const EntryImage& image, InodeNumber reference);
  // The inode of the name, if the file is the one that the image describes; otherwise 0.
  Result<InodeNumber> FindCurrent(const EntryImage& image);
  Status CheckBegin(uint64_t bytes) const;

  const StoreContext& store_;
  const FileContent& content_;
  IdAllocator* const ids_;
  InodeStore& inodes_;
  InodeLifetimes& lifetimes_;
  ChangeApplier& changes_;
  DirectoryNames& names_;
  FoldOps& folds_;
  CloneOps& clones_;
};

}  // namespace siltfs
