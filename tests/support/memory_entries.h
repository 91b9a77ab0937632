// The EntryStore and the ContentSource of MemoryFileSystem.
//
// MemoryEntries gives the expected results in tests of imports. It assumes that images do not
// contradict themselves. MemoryContents refuses every call: it has no chunks.
//
// Thread-safety: every call from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/content_source.h"
#include "fs/interface/entry_store.h"
#include "store/base/thread_annotations.h"
#include "tests/support/memory_inodes.h"

namespace siltfs::testing {

class MemoryEntries final : public EntryStore {
 public:
  // The arguments must outlive it; `mutex` guards `inodes`.
  MemoryEntries(Mutex& mutex, MemoryInodes& inodes) : mutex_(mutex), inodes_(inodes) {}

  // Returns the inodes of a snapshot, from which Clone copies; null if there is no such snapshot.
  // Set it before the first Clone.
  std::function<std::shared_ptr<const MemoryInodes>(uint64_t snapshot)> find_snapshot;

  std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) override;
  Result<PutOutcome> Offer(const EntryImage& image, InodeNumber reference,
                           bool probably_new) override;
  Result<PutOutcome> Place(InodeNumber temporary, const EntryImage& image) override;
  Result<PutOutcome> Link(InodeNumber inode, InodeNumber parent, std::string_view name) override;
  Result<bool> SetDirectory(InodeNumber directory, const EntryImage& image) override;
  Result<CloneOutcome> Clone(const CloneRequest& request) override;
  bool MayBeCached(InodeNumber /*inode*/) const override { return true; }

 private:
  // A directory that exists, and the inode that has a name in it; null if the name is free.
  struct NamePlace {
    MemoryInode& directory;
    MemoryInode* old = nullptr;
  };

  // kIsADirectory if the name belongs to a directory.
  Result<NamePlace> Find(InodeNumber parent, std::string_view name) SILTFS_REQUIRES(mutex_);
  PutOutcome Enter(const NamePlace& place, std::string_view name, MemoryInode& inode)
      SILTFS_REQUIRES(mutex_);
  Result<PutOutcome> PutOne(const EntryImage& image) SILTFS_REQUIRES(mutex_);
  // The inode that the image describes, if it has the image's name already; otherwise null.
  MemoryInode* FindCurrent(const EntryImage& image) SILTFS_REQUIRES(mutex_);
  Result<PutOutcome> Share(const EntryImage& image, InodeNumber reference) SILTFS_REQUIRES(mutex_);

  // From each inode that was copied to its copy.
  using Copies = std::map<InodeNumber, InodeNumber>;
  // Makes a copy that has one name, or counts another name of the copy that is there already.
  InodeNumber CopyTree(const MemoryInodes& tree, InodeNumber source, InodeNumber parent,
                       Copies& copies, CloneTotals& totals) SILTFS_REQUIRES(mutex_);

  Mutex& mutex_;
  MemoryInodes& inodes_ SILTFS_GUARDED_BY(mutex_);
};

class MemoryContents final : public ContentSource {
 public:
  std::unique_ptr<Reader> NewReader() override { return nullptr; }
  Status Visit(InodeNumber /*file*/, uint64_t /*offset*/,
               const std::function<bool(const ContentPiece&)>& /*visit*/) override {
    return {StatusCode::kUnsupported, "has no exports"};
  }
};

}  // namespace siltfs::testing
