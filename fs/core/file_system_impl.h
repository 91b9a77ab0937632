// The FileSystem over metadata and chunks: owns the parts of an open store and the classes that
// implement its operations, and forwards each call to one of them.
//
// The steps of an operation: wait for room in the open group; lock the inodes concerned, in the
// order of their numbers; read; change the inodes in memory, and collect mutations in a Change;
// apply the Change as a whole (change_applier.h). To find the inodes concerned, an operation may
// read names before it locks. It reads these names again when it holds the locks.
//
// Each class uses only classes further up in this list:
//   StoreContext      the parts of the store that all operations use
//   OperationGate     keeps operations out during a rollback; RoutedFileSystem passes it
//   ChangeApplier     applies changes, at once or deferred
//   InodeStore        inodes in memory, and their loading
//   InodeLifetimes    deletes inodes without names
//   AclOps, XattrOps  access control lists, extended attributes
//   FoldOps           folds of files
//   AttributeOps      changes of attributes
//   FoldThread        folds in the background
//   DirectoryNames    entries of directories
//   NamespaceOps, RenameOps, FileOps, WriteOps: the calls of FileSystem
//   CloneOps          clones of trees
//   SnapshotTrees, SnapshotOps: snapshots, and their trees
//   TransferOps       sends and receives snapshots
//   EntryOps, ContentOps: whole entries, and contents in the order of the log, for copies of trees
//   UsageOps          measures what paths take, and finds duplicates
//   StoreMaintenanceImpl: statistics, recompression, garbage collection, scrub
//
// Lock order: the gate; then RenameOps::rename_mutex_; then inodes, by ascending number; then the
// mutexes of InodeTable and similar tables, of ChunkStore and of MetadataStore.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/chunks/chunk_store.h"
#include "fs/content/file_content.h"
#include "fs/content/overlay_memory.h"
#include "fs/core/index_replay.h"
#include "fs/core/maintenance_jobs.h"
#include "fs/core/store_maintenance_impl.h"
#include "fs/deltas/near_duplicates.h"
#include "fs/guide/segment_guide.h"
#include "fs/inodes/change_applier.h"
#include "fs/inodes/inode_lifetimes.h"
#include "fs/inodes/inode_store.h"
#include "fs/inodes/operation_gate.h"
#include "fs/inodes/rolled_back_inodes.h"
#include "fs/inodes/store_context.h"
#include "fs/interface/file_system.h"
#include "fs/meta/id_allocator.h"
#include "fs/meta/metadata_store.h"
#include "fs/ops/acl_ops.h"
#include "fs/ops/attribute_ops.h"
#include "fs/ops/clone_ops.h"
#include "fs/ops/content_ops.h"
#include "fs/ops/directory_names.h"
#include "fs/ops/entry_ops.h"
#include "fs/ops/file_ops.h"
#include "fs/ops/fold_ops.h"
#include "fs/ops/fold_thread.h"
#include "fs/ops/namespace_ops.h"
#include "fs/ops/quota_ops.h"
#include "fs/ops/rename_ops.h"
#include "fs/ops/write_ops.h"
#include "fs/ops/xattr_ops.h"
#include "fs/replication/transfer_ops.h"
#include "fs/snapshots/snapshot_ops.h"
#include "fs/snapshots/snapshot_trees.h"
#include "fs/space/usage_ops.h"
#include "index/chunk_index.h"
#include "store/env/space_reserve.h"
#include "store/superblock/superblock.h"

namespace siltfs {

class FileSystemImpl final : public FileSystem {
 public:
  // Opened by open_store.cc, in this order; destroyed in reverse order. Before the chunk store is
  // destroyed, commits must have ended (MetadataStore::EndCommits), unless no commit was ever
  // begun.
  struct Parts {
    std::unique_ptr<SpaceReserve> reserve;  // null when read-only
    std::string reserve_directory;          // holds the files of the reserve
    // `env` is for data, `metadata_env` for metadata. Writes through them take space from the
    // reserve if the disk is full (ReserveEnv). Both are null if the mount keeps no reserve.
    std::unique_ptr<Env> env;
    std::unique_ptr<Env> metadata_env;
    std::unique_ptr<FileLock> lock;
    Superblock superblock;
    std::unique_ptr<ChunkIndex> index;
    std::unique_ptr<SegmentGuide> guide;  // null without one
    std::unique_ptr<MetadataStore> metadata;
    std::unique_ptr<IdAllocator> ids;  // null when read-only
    std::unique_ptr<ChunkParts> chunk_parts;
    std::unique_ptr<ChunkStore> chunks;
    std::unique_ptr<NearDuplicates> near_duplicates;  // null if no deltas are made
    std::unique_ptr<MaintenanceJobs> jobs;            // null when read-only
    std::unique_ptr<IndexReplay> replay;              // null if the index has all entries
    std::shared_ptr<const ChunkerTables> chunker_tables;
  };
  FileSystemImpl(Env& env, FileSystemOptions options, Parts parts);
  ~FileSystemImpl() override;

  // Removes the orphans that a crash has left, and starts the background work. Does nothing if the
  // file system is read-only.
  Status Start();

  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    return namespace_.Lookup(parent, name);
  }
  void Forget(InodeNumber inode, uint64_t lookups) override { namespace_.Forget(inode, lookups); }
  Result<Attributes> MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                              uint64_t device, Caller caller) override {
    return namespace_.MakeNode(parent, name, mode, device, caller);
  }
  Result<Attributes> MakeDirectory(InodeNumber parent, std::string_view name, uint32_t mode,
                                   Caller caller) override {
    return namespace_.MakeDirectory(parent, name, mode, caller);
  }
  Result<Attributes> MakeSymlink(InodeNumber parent, std::string_view name, std::string_view target,
                                 Caller caller) override {
    return namespace_.MakeSymlink(parent, name, target, caller);
  }
  Result<Attributes> Link(InodeNumber inode, InodeNumber new_parent,
                          std::string_view new_name) override {
    return namespace_.Link(inode, new_parent, new_name);
  }
  Status Unlink(InodeNumber parent, std::string_view name) override {
    return namespace_.Unlink(parent, name);
  }
  Status RemoveDirectory(InodeNumber parent, std::string_view name) override {
    return namespace_.RemoveDirectory(parent, name);
  }
  Status Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                std::string_view new_name, RenameMode mode) override {
    return renames_.Rename(parent, name, new_parent, new_name, mode);
  }
  Result<std::string> ReadLink(InodeNumber inode) override { return namespace_.ReadLink(inode); }

  Result<Attributes> GetAttributes(InodeNumber inode) override {
    return inodes_.GetAttributes(inode);
  }
  Result<Attributes> SetAttributes(InodeNumber inode, const AttributeChange& change) override {
    return attributes_.SetAttributes(inode, change);
  }
  Result<std::string> GetXattr(InodeNumber inode, std::string_view name) override {
    return xattrs_.GetXattr(inode, name);
  }
  Status SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                  XattrMode mode) override {
    return xattrs_.SetXattr(inode, name, value, mode);
  }
  Result<std::vector<std::string>> ListXattrs(InodeNumber inode) override {
    return xattrs_.ListXattrs(inode);
  }
  Status RemoveXattr(InodeNumber inode, std::string_view name) override {
    return xattrs_.RemoveXattr(inode, name);
  }

  Status ReadDirectory(InodeNumber directory, uint64_t cookie,
                       const std::function<bool(const DirectoryRecord&)>& visit) override {
    return namespace_.ReadDirectory(directory, cookie, visit);
  }

  Result<Attributes> CreateFile(InodeNumber parent, std::string_view name, uint32_t mode,
                                Caller caller) override {
    return namespace_.CreateFile(parent, name, mode, caller);
  }
  Result<Attributes> MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                       Caller caller) override {
    return namespace_.MakeTemporaryFile(directory, mode, caller);
  }
  Status OpenFile(InodeNumber inode, bool truncate) override {
    return files_.OpenFile(inode, truncate);
  }
  Status CheckOpenForWriting(InodeNumber) const override { return Status::Ok(); }
  void ReleaseFile(InodeNumber inode) override { files_.ReleaseFile(inode); }
  Result<size_t> Read(InodeNumber inode, uint64_t offset, MutableByteView out) override {
    return files_.Read(inode, offset, out);
  }
  Status Write(InodeNumber inode, uint64_t offset, ByteView data, Privileges privileges,
               WriteTimes times) override {
    return writes_.Write(inode, offset, data, privileges, times);
  }
  Status Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset, uint64_t length,
                  bool keep_size, Privileges privileges) override {
    return writes_.Allocate(inode, mode, offset, length, keep_size, privileges);
  }
  Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                       SeekTarget target) override {
    return files_.Seek(inode, offset, target);
  }
  Result<uint64_t> CopyRange(InodeNumber source, uint64_t source_offset, InodeNumber target,
                             uint64_t target_offset, uint64_t length,
                             Privileges privileges) override {
    return writes_.CopyRange(source, source_offset, target, target_offset, length, privileges);
  }
  Status Fsync(InodeNumber inode) override { return files_.Fsync(inode); }

  Status SyncAll() override { return metadata_->CommitAll(); }
  Result<SpaceInfo> GetSpace() override { return store_.GetContentSpace(); }
  bool NearlyFull() const override { return store_.NearlyFull(); }
  Result<SpaceInfo> GetSpaceOf(InodeNumber inode) override;
  bool NearlyFullFor(InodeNumber inode) override;
  DirectoryQuotas* quotas() override { return &quotas_; }
  EntryStore& entries() override { return entries_; }
  ContentSource& contents() override { return contents_; }
  Snapshots& snapshots() override { return snapshots_; }
  SnapshotTransfers& transfers() override { return transfers_; }
  StoreMaintenance& maintenance() override { return maintenance_; }
  UsageMeasures& usage() override { return usage_; }
  Status Close() override;

  // For RoutedFileSystem.
  SnapshotTrees& snapshot_trees() { return snapshot_trees_; }
  OperationGate& gate() { return gate_; }
  RolledBackInodes& rolled_back() { return rolled_back_; }

 private:
  // Folds all files in memory that need it, so that a clean unmount leaves no overlays of these
  // files.
  void FoldAll();
  // The quota that the inode counts against.
  Result<QuotaNumber> QuotaOf(InodeNumber inode);
  // Sets the feature of the superblock by which versions without quotas refuse the store.
  Status EnableQuotas();

  // The parts of the store, in the order of Parts.
  std::unique_ptr<SpaceReserve> reserve_;
  std::unique_ptr<Env> reserve_env_;
  std::unique_ptr<Env> metadata_env_;
  Env& env_;
  const FileSystemOptions options_;
  std::unique_ptr<FileLock> lock_;
  Superblock superblock_;
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<SegmentGuide> guide_;
  std::unique_ptr<MetadataStore> metadata_;
  std::unique_ptr<IdAllocator> ids_;
  std::unique_ptr<ChunkParts> chunk_parts_;
  std::unique_ptr<ChunkStore> chunks_;
  std::unique_ptr<NearDuplicates> near_duplicates_;
  std::unique_ptr<MaintenanceJobs> jobs_;  // null when read-only
  std::unique_ptr<IndexReplay> replay_;

  // The operations, in the order of their dependencies.
  const StoreContext store_;
  OperationGate gate_;
  RolledBackInodes rolled_back_;
  const FileContent content_;
  OverlayMemory overlay_memory_;  // outlives the inodes, which changes_ and inodes_ own
  ChangeApplier changes_;
  InodeStore inodes_;
  InodeLifetimes lifetimes_;
  AclOps acls_;
  XattrOps xattrs_;
  FoldOps folds_;
  AttributeOps attributes_;
  FoldThread fold_thread_;
  DirectoryNames names_;
  NamespaceOps namespace_;
  RenameOps renames_;
  FileOps files_;
  WriteOps writes_;
  CloneOps clones_;
  QuotaOps quotas_;
  SnapshotTrees snapshot_trees_;
  SnapshotOps snapshots_;
  TransferOps transfers_;
  EntryOps entries_;
  ContentOps contents_;
  UsageOps usage_;
  StoreMaintenanceImpl maintenance_;
};

}  // namespace siltfs
