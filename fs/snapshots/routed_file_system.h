// The live file system with its snapshots below the directory `.snapshots` of the root directory,
// or one snapshot alone. Each call goes to the live file system or to the tree of a snapshot,
// depending on the inode's number (snapshot_inode.h). Further objects of this class may show other
// snapshots of the same store.
//
// A real entry `.snapshots` of the root directory, which another version may have made, is hidden
// unless the directory of snapshots is off.
//
// Thread-safety, errors and ownership: as FileSystem. Changes of snapshots fail with kReadOnly.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/inodes/operation_gate.h"
#include "fs/inodes/rolled_back_inodes.h"
#include "fs/interface/content_source.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/snapshot_inode.h"
#include "fs/interface/snapshots.h"
#include "fs/interface/space_usage.h"
#include "fs/snapshots/snapshot_trees.h"

namespace siltfs {

class RoutedFileSystem final : public FileSystem {
 public:
  // `gate`, `rolled_back` and `trees` must live as long as `live`. `root`: the number of the
  // snapshot to show alone, with a view of it; 0: the live file system.
  RoutedFileSystem(std::unique_ptr<FileSystem> live, OperationGate& gate,
                   RolledBackInodes& rolled_back, SnapshotTrees& trees, SnapshotDirectoryMode mode,
                   uint64_t root, SnapshotTrees::View view);
  // Shows the snapshot alone, beside `live`, which must outlive it. Takes the view, a view of this
  // snapshot.
  RoutedFileSystem(FileSystem& live, OperationGate& gate, RolledBackInodes& rolled_back,
                   SnapshotTrees& trees, uint64_t snapshot, SnapshotTrees::View view);
  ~RoutedFileSystem() override;

  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override;
  void Forget(InodeNumber inode, uint64_t lookups) override;
  Result<Attributes> MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                              uint64_t device, Caller caller) override;
  Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                   Caller caller) override;
  Result<Attributes> MakeSymlink(InodeNumber parent, std::string_view name, std::string_view target,
                                 Caller caller) override;
  Result<Attributes> Link(InodeNumber inode, InodeNumber new_parent,
                          std::string_view new_name) override;
  Status Unlink(InodeNumber parent, std::string_view name) override;
  Status RemoveDirectory(InodeNumber parent, std::string_view name) override;
  Status Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                std::string_view new_name, RenameMode mode) override;
  Result<std::string> ReadLink(InodeNumber inode) override;

  Result<Attributes> GetAttributes(InodeNumber inode) override;
  Result<Attributes> SetAttributes(InodeNumber inode, const AttributeChange& change) override;
  Result<std::string> GetXattr(InodeNumber inode, std::string_view name) override;
  Status SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                  XattrMode mode) override;
  Result<std::vector<std::string>> ListXattrs(InodeNumber inode) override;
  Status RemoveXattr(InodeNumber inode, std::string_view name) override;

  Status ReadDirectory(InodeNumber directory, uint64_t cookie,
                       const std::function<bool(const DirectoryRecord&)>& visit) override;

  Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                Caller caller) override;
  Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                       Caller caller) override;
  Status OpenFile(InodeNumber inode, bool truncate) override;
  Status CheckOpenForWriting(InodeNumber inode) const override { return CheckLive(inode); }
  uint64_t GenerationOf(InodeNumber inode) const override;
  void ReleaseFile(InodeNumber inode) override;
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override;
  Status Write(InodeNumber inode, uint64_t offset, ByteView data, Privileges privileges,
               WriteTimes times) override;
  Status Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset, uint64_t length,
                  bool keep_size, Privileges privileges) override;
  Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                       SeekTarget target) override;
  Result<uint64_t> CopyRange(InodeNumber source, uint64_t source_offset, InodeNumber target,
                             uint64_t target_offset, uint64_t length,
                             Privileges privileges) override;
  Status Fsync(InodeNumber inode) override;

  Status SyncAll() override { return owned_ ? live_->SyncAll() : Status::Ok(); }
  Result<SpaceInfo> GetSpace() override { return live_->GetSpace(); }
  bool NearlyFull() const override { return live_->NearlyFull(); }
  Result<SpaceInfo> GetSpaceOf(InodeNumber inode) override;
  bool NearlyFullFor(InodeNumber inode) override;
  EntryStore& entries() override { return entries_; }
  ContentSource& contents() override { return contents_; }
  Snapshots& snapshots() override { return live_->snapshots(); }
  DirectoryQuotas* quotas() override { return root_ == 0 ? live_->quotas() : nullptr; }
  SnapshotTransfers& transfers() override { return live_->transfers(); }
  StoreMaintenance& maintenance() override { return live_->maintenance(); }
  UsageMeasures& usage() override { return usage_; }
  Status Close() override { return owned_ ? live_->Close() : Status::Ok(); }

 private:
  // A clone may copy from a snapshot.
  class RoutedEntries final : public EntryStore {
   public:
    explicit RoutedEntries(RoutedFileSystem& routed) : routed_(routed) {}
    std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) override;
    Result<PutOutcome> Offer(const EntryImage& image, InodeNumber reference,
                             bool probably_new) override;
    Result<PutOutcome> Place(InodeNumber temporary, const EntryImage& image) override;
    Result<PutOutcome> Link(InodeNumber inode, InodeNumber parent, std::string_view name) override;
    Result<bool> SetDirectory(InodeNumber directory, const EntryImage& image) override;
    Result<CloneOutcome> Clone(const CloneRequest& request) override;
    bool MayBeCached(InodeNumber inode) const override { return live().MayBeCached(inode); }

   private:
    EntryStore& live() const { return routed_.live_->entries(); }
    Status Check(const EntryImage& image) const {
      return routed_.CheckNewName(image.parent, image.name);
    }

    RoutedFileSystem& routed_;
  };
  class RoutedContents final : public ContentSource {
   public:
    explicit RoutedContents(RoutedFileSystem& routed) : routed_(routed) {}
    std::unique_ptr<Reader> NewReader() override { return routed_.live_->contents().NewReader(); }
    Status Visit(InodeNumber file, uint64_t offset,
                 const std::function<bool(const ContentPiece&)>& visit) override;

   private:
    RoutedFileSystem& routed_;
  };

  // Snapshots are refused, because no part of them can be removed.
  class RoutedUsage final : public UsageMeasures {
   public:
    explicit RoutedUsage(RoutedFileSystem& routed) : routed_(routed) {}
    Result<UsageReport> Measure(const UsageRequest& request) override;
    Result<DuplicateReport> FindDuplicates(const DuplicateRequest& request) override;

   private:
    Status Check(const UsageScope& scope) const;

    RoutedFileSystem& routed_;
  };

  bool HasDirectory() const { return root_ == 0 && mode_ != SnapshotDirectoryMode::kOff; }
  // Whether this is the name of the directory of snapshots.
  bool IsDirectoryName(InodeNumber parent, std::string_view name) const {
    return HasDirectory() && parent == kRootInode && name == kSnapshotDirectoryName;
  }
  // The snapshot and the inode to which a shown number belongs.
  SnapshotInode Split(InodeNumber shown) const;
  InodeNumber Join(uint64_t snapshot, InodeNumber inode) const {
    return root_ != 0 ? inode : JoinSnapshotInode(snapshot, inode);
  }
  bool IsLive(InodeNumber shown) const {
    return shown != kSnapshotDirectory && Split(shown).snapshot == 0;
  }
  // OK if the inode is the live file system's; else kReadOnly.
  Status CheckLive(InodeNumber shown) const;
  // CheckLive; kReadOnly also if the name is that of the directory of snapshots.
  Status CheckLiveName(InodeNumber parent, std::string_view name) const;
  // As CheckLiveName, for a call that makes a name: kAlreadyExists.
  Status CheckNewName(InodeNumber parent, std::string_view name) const;

  Status OpenLive(InodeNumber inode, bool truncate);
  // For a reply that makes the kernel look at its inode again.
  Result<Attributes> WithGeneration(Result<Attributes> attributes);

  Attributes DirectoryAttributes() const;
  Result<Attributes> LookupInDirectory(std::string_view name);
  Result<Attributes> LookupInSnapshot(const SnapshotInode& parent, std::string_view name);
  Status ListDirectory(uint64_t cookie, const std::function<bool(const DirectoryRecord&)>& visit);
  Status ListSnapshot(const SnapshotInode& directory, uint64_t cookie,
                      const std::function<bool(const DirectoryRecord&)>& visit);

  Result<SnapshotTrees::Use> Enter(uint64_t snapshot) { return trees_.Enter(snapshot, view_); }

  const std::unique_ptr<FileSystem> owned_;  // null if it is a view beside the live file system
  FileSystem* const live_;
  OperationGate& gate_;  // each call on a live inode has a pass of it
  RolledBackInodes& rolled_back_;
  SnapshotTrees& trees_;
  const SnapshotDirectoryMode mode_;
  const uint64_t root_;
  const SnapshotTrees::View view_;
  RoutedEntries entries_{*this};
  RoutedContents contents_{*this};
  RoutedUsage usage_{*this};
};

}  // namespace siltfs
