// The FileSystem over metadata and chunks. The steps of an operation: wait for room in the open
// group; lock the inodes concerned, in the order of their numbers; read; change the inodes in
// memory and collect mutations; Apply them as one. Names read before locking, to find the inodes
// concerned, are read again under the locks.
//
// Lock order: rename_mutex_, inodes (by number), then the mutexes of the tables, of ChunkStore and
// MetadataStore.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "fs/core/dirty_inodes.h"
#include "fs/core/file_content.h"
#include "fs/core/file_system.h"
#include "fs/core/inode_table.h"
#include "fs/core/lookup_counts.h"
#include "fs/core/stats.h"
#include "fs/dedup/chunk_store.h"
#include "fs/meta/directory_entry.h"
#include "fs/meta/id_allocator.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/schema.h"
#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"
#include "store/env/space_reserve.h"

namespace siltfs {

class FileSystemImpl final : public FileSystem, private DeferredChanges {
 public:
  // Opened by open_store.cc, in this order; destroyed in reverse order.
  struct Parts {
    std::unique_ptr<SpaceReserve> reserve;  // null when read-only
    // These two draw on the reserve, for data and for metadata; null when no reserve is kept.
    std::unique_ptr<Env> env;
    std::unique_ptr<Env> metadata_env;
    std::unique_ptr<FileLock> lock;
    Superblock superblock;
    std::unique_ptr<ChunkIndex> index;
    std::unique_ptr<ChunkStore> chunks;
    std::unique_ptr<MetadataStore> metadata;
    std::unique_ptr<IdAllocator> ids;  // null when read-only
    std::shared_ptr<const ChunkerTables> chunker_tables;
  };
  FileSystemImpl(Env& env, FileSystemOptions options, Parts parts);
  ~FileSystemImpl() override;

  // Removes inodes that were unlinked but in use at a crash, and starts the maintenance thread.
  Status Start();

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

  Status SyncAll() override;
  Result<SpaceInfo> GetSpace() override;
  bool NearlyFull() const override { return reserve_ && reserve_->nearly_full(); }
  Result<FileSystemStats> GetStats() override;
  Result<RecompressionReport> Recompress() override;
  void StopRecompression() override { chunks_->StopRecompression(); }
  Result<GarbageReport> CollectGarbage(bool dry_run) override;
  void StopCollecting() override { chunks_->StopCollecting(); }
  Result<ScrubReport> Scrub(ScrubMode mode) override;
  void InterruptScrub() override { chunks_->InterruptScrub(); }
  void StopScrubbing() override { chunks_->StopScrubbing(); }
  Status Close() override;

 private:
  // The mutations of one operation and their effect on the counters.
  struct Change {
    std::vector<Mutation> mutations;
    Counters differences{};
    std::vector<Inode*> inodes;      // changed in memory, or about to be; locked
    std::optional<uint64_t> commit;  // the commit that the change has joined
    bool applied = false;

    Change() = default;
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    // Inodes of a failed change are loaded again. Dirty inodes are not: they hold accepted changes.
    ~Change() {
      if (applied) return;
      for (Inode* inode : inodes) {
        if (!inode->deferred) inode->Invalidate();
      }
    }

    void Count(Counter counter, int64_t difference) {
      differences[static_cast<size_t>(counter)] += difference;
    }
    void Put(std::string key, std::string value) {
      mutations.push_back({std::move(key), std::move(value)});
    }
    void Delete(std::string key) { mutations.push_back({std::move(key), std::nullopt}); }
  };
  // --- inode_ops.cc; locks held exclusively
  // Both load the inode, the second also its overlay. They save a dirty inode, so that metadata is
  // up to date. kStale if there is no such inode.
  Status LoadAndFlush(Inode& inode);
  Status LoadContentAndFlush(Inode& inode);
  // Both load, too, but leave a dirty inode dirty.
  Status LoadRecord(Inode& inode);
  Status LoadContent(Inode& inode);
  // Loads the inode (with its overlay if `overlay`), and calls `use` with the inode locked in
  // shared mode.
  Status WithLoaded(InodeNumber number, bool overlay,
                    const std::function<Status(const Inode&)>& use);
  static Attributes AttributesOf(const Inode& inode);
  // --- attribute_ops.cc
  Result<Attributes> ChangeAttributes(Inode& inode, const AttributeChange& wanted);
  // kNoSpace if there is no room for another attribute's name; inode loaded.
  Status CheckXattrList(const Inode& inode, std::string_view new_name) const;

  // --- acl_ops.cc; locks held exclusively, inodes loaded
  Status SetAcl(Inode& inode, std::string_view name, std::string_view value, bool present,
                XattrMode mode);
  // Adds the access list's update for new permission bits to the change.
  Status AdaptAcl(Inode& inode, uint32_t mode, Change& change) const;
  Result<std::shared_ptr<const PosixAcl>> DefaultAclOf(Inode& directory) const;
  // Clears the bits in a new inode's mode that `inherited` does not grant; without inherited lists,
  // the bits of the umask. Adds the inherited lists to the change.
  static void SetFirstMode(Inode& inode, const std::shared_ptr<const PosixAcl>& inherited,
                           uint32_t umask, Change& change);
  // Removes `privileges` from the inode; the caller saves the inode in the same change.
  Status DropPrivileges(Inode& inode, Privileges privileges, Change& change) const;

  // --- inode_ops.cc
  // Adds the inode's record to the change.
  void Save(Inode& inode, Change& change) const;
  // Adds record, overlay and the difference in counters since `before` to the change. For a dirty
  // inode, the difference is the one since it was last saved.
  void SaveContent(Inode& inode, const ContentTally& before, Change& change) const;
  Status Apply(Change& change);
  // Adds the removal of all keys of the inode to the change.
  Status DeleteInode(Inode& inode, Change& change);
  // Removes the inode if it is an orphan and neither open nor looked up.
  void RemoveIfUnused(InodeNumber number);
  Status RemoveOrphans();
  bool IsOrphan(InodeNumber number) const;
  void SetOrphan(InodeNumber number, bool orphan);

  // --- namespace_ops.cc
  struct NewInode {
    uint32_t mode = 0;
    uint64_t device = 0;
    Caller caller;
    std::string_view target;
    bool open = false;
    bool temporary = false;  // without a name
  };
  Result<Attributes> LookupSelf(InodeNumber number);
  Result<Attributes> LookupParent(InodeNumber directory);
  Result<Attributes> MakeInode(InodeNumber parent, std::string_view name, const NewInode& wanted);
  static Status CheckName(std::string_view name);
  Result<std::optional<NameEntry>> FindName(InodeNumber directory, std::string_view name) const;
  Status CheckDirectory(const Inode& directory) const;  // loaded, a directory, not removed
  // These functions enter or remove a name, and update cookies and entry counts, but not link
  // counts.
  static void AddName(Inode& directory, std::string_view name, const Inode& child, Change& change);
  static void PutName(Inode& directory, std::string_view name, const Inode& child, uint64_t cookie,
                      Change& change);
  static void DropName(Inode& directory, std::string_view name, const NameEntry& entry,
                       Change& change);
  // Drops one link of a file, or all links of a directory. An inode without links is deleted, or
  // becomes an orphan if it is open or looked up.
  Status DropLink(Inode& inode, int64_t now, Change& change);
  // Call it after the change that deleted the inode was applied.
  void ForgetRemoved(Inode& inode);
  Status RemoveName(InodeNumber parent, std::string_view name, bool directory);
  Status RemoveNameLocked(Inode& from, std::string_view name, const NameEntry& entry, Inode& inode,
                          bool directory);
  // Returns why a name was not found: there is no such directory, or no such name in it.
  Status NoSuchName(InodeNumber directory);
  Status CheckNotInside(InodeNumber directory, InodeNumber ancestor) const;

  // --- rename.cc
  // A name, the directory it is in and the inode it means; all locked and loaded.
  struct Place {
    Inode& directory;
    std::string_view name;
    std::optional<NameEntry> entry;
    Inode* inode = nullptr;  // null if the name is free
  };
  Status RenameLocked(const Place& from, const Place& to, RenameMode mode);
  Status Replace(const Place& from, const Place& to, int64_t now, Change& change);
  static void Exchange(const Place& from, const Place& to, int64_t now, Change& change);

  // --- deferred_changes.cc; locks held exclusively
  Status FlushDeferred(uint64_t number) override;
  // Joins the change to the group that is open now. Deferred changes of the inode that belong to an
  // earlier group are saved to that group. `inode` is loaded with its overlay.
  Status Join(Inode& inode, Change& change);
  // Defers the change, which has joined and made no mutations.
  void Defer(Inode& inode, const ContentTally& before, Change& change);
  bool TooMuchToDefer() const { return dirty_inodes_.bytes() > options_.group_bytes; }
  // Both save the deferred changes of a dirty inode. SaveDeferred leaves the inode in
  // dirty_inodes_, for a change that has joined; SaveLast removes it.
  Status SaveDeferred(Inode& inode);
  Status SaveLast(Inode& inode);
  void ForgetDeferred(Inode& inode);
  // Applies a change of this inode alone, which has joined and includes the deferred changes.
  Status ApplyJoined(Inode& inode, Change& change);
  Status SaveAllDeferred(uint64_t last_commit);

  // --- file_ops.cc
  static bool NeedsFold(const InodeRecord& record);
  bool NeedsFold(Inode& inode);  // locked exclusively; loads it
  static Status CheckRegular(const InodeRecord& record);
  // Counts the raw bytes that a change of the overlay has added for this commit. Call it after the
  // change.
  static void CountFresh(Inode& inode, uint64_t plain_before, uint64_t commit);
  // Saves a change of content that was made in memory, or defers it if it has joined. Folds a part
  // of an overlay that has grown too large.
  Status ApplyContent(Inode& inode, const ContentTally& before, Change& change,
                      Privileges privileges, WriteTimes times = WriteTimes::kNow);
  Status FoldLocked(Inode& inode, FileContent::FoldMode mode);
  // Folds a part of a locked file, so that other threads do not wait long for its lock.
  Status FoldSomeLocked(Inode& inode, FileContent::FoldMode mode);
  // Folds a part of a file; true if nothing is left to fold.
  Result<bool> FoldStep(InodeNumber number);
  // Folds the file part by part; kInUse if writes outpace the fold.
  Status FoldInSteps(InodeNumber number);
  Status FoldForCopy(InodeNumber number);
  // Folds a file that is not being written; reports failures.
  void FoldAndLog(InodeNumber number);
  void FoldLeftovers();

  // --- damage.cc
  // Reports the damage that makes [offset, offset + length) of a file unreadable, once for each
  // block.
  void ReportDamage(InodeNumber inode, uint64_t offset, uint64_t length, const Status& damage);
  // Finds and reports the files that use chunks known to be damaged.
  Status NameDamagedFiles(ScrubReport& report);

  // --- maintenance.cc
  void RunMaintenance();
  void FoldIdle();
  // Drops overlays from memory until the remaining ones are small enough. Metadata keeps all of
  // them.
  void RelievePressure();
  void WakeMaintenance();
  bool UnderPressure() const { return overlay_raw_bytes_ > kMaxOverlayRawBytes; }
  void StopMaintenance();

  // Limit for all overlays in memory together.
  static constexpr uint64_t kMaxOverlayRawBytes = 8u << 20;

  int64_t Now() { return env_.NowNanoseconds(); }
  Status CheckWritable() const;
  // Call it before a change that takes this many bytes of the disk. kNoSpace if the remaining space
  // is only for deletions.
  Status CheckRoom(uint64_t bytes) { return reserve_ ? reserve_->CheckRoom(bytes) : Status::Ok(); }
  // Approximate bytes of a new name, inode or attribute in metadata.
  static constexpr uint64_t kBytesPerName = 4096;

  std::unique_ptr<SpaceReserve> reserve_;
  std::unique_ptr<Env> reserve_env_;
  std::unique_ptr<Env> metadata_env_;
  Env& env_;
  const FileSystemOptions options_;
  std::unique_ptr<FileLock> lock_;
  Superblock superblock_;
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<ChunkStore> chunks_;
  std::unique_ptr<MetadataStore> metadata_;
  std::unique_ptr<IdAllocator> ids_;
  FileContent content_;
  PlainBytesTotal overlay_raw_bytes_ = 0;         // outlives the inodes
  std::atomic<bool> folds_wait_for_room_{false};  // folds of files that are not open
  InodeTable inodes_;
  LookupCounts lookups_;
  DirtyInodes dirty_inodes_;
  Mutex rename_mutex_;  // held while an entry moves to another directory, so that the tree above it
                        // does not change

  mutable Mutex orphans_mutex_;
  std::unordered_set<InodeNumber> orphans_ SILTFS_GUARDED_BY(orphans_mutex_);

  Mutex reported_mutex_;
  std::unordered_set<size_t> reported_
      SILTFS_GUARDED_BY(reported_mutex_);  // hashes of reported places

  Mutex maintenance_mutex_;
  CondVar maintenance_wakes_;
  bool stopping_ SILTFS_GUARDED_BY(maintenance_mutex_) = false;
  std::thread maintenance_thread_;
};

}  // namespace siltfs
