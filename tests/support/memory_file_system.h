// The FileSystem as a book would have it: everything in maps, under one mutex, nothing kept. It
// stands in for the core in tests of what lies above it, and says in tests of the core what the
// answer should have been.
//
// Beyond the interface it tells what a test wants to know: how often an inode is looked up and
// open, and what is left. Times come from `clock`, which a test may replace to get the same times
// twice.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "fs/core/file_system.h"
#include "fs/core/stats.h"
#include "store/base/thread_annotations.h"

namespace siltfs::testing {

class MemoryFileSystem : public FileSystem {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds since 1970

  static constexpr uint64_t kPageBytes = 4096;  // holes are found page by page

  MemoryFileSystem();
  explicit MemoryFileSystem(Clock clock);

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
  Status Write(InodeNumber inode, uint64_t offset, ByteView data,
               Privileges privileges = Privileges::kKeep,
               WriteTimes times = WriteTimes::kNow) override;
  Status Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset, uint64_t length,
                  bool keep_size, Privileges privileges = Privileges::kKeep) override;
  Result<std::optional<uint64_t>> Seek(InodeNumber inode, uint64_t offset,
                                       SeekTarget target) override;
  Result<uint64_t> CopyRange(InodeNumber source, uint64_t source_offset, InodeNumber target,
                             uint64_t target_offset, uint64_t length,
                             Privileges privileges = Privileges::kKeep) override;
  Status Fsync(InodeNumber inode) override;

  Status SyncAll() override;
  Result<SpaceInfo> GetSpace() override;
  bool NearlyFull() const override { return false; }
  Result<FileSystemStats> GetStats() override;
  Result<SettleReport> Settle() override;  // there is nothing to settle
  void StopSettling() override {}
  Result<GarbageReport> CollectGarbage(bool dry_run) override;  // there is none
  void StopCollecting() override {}
  Result<ScrubReport> Scrub(ScrubMode mode) override;  // there is nothing to verify
  void InterruptScrub() override {}
  void StopScrubbing() override {}
  Status Close() override;

  // --- for tests
  uint64_t LookupCount(InodeNumber inode) const;
  uint64_t OpenCount(InodeNumber inode) const;
  size_t InodeCount() const;  // those that only a lookup or an open keeps alive included
  // Over all inodes but the root's, which the kernel never forgets.
  uint64_t TotalLookups() const;
  uint64_t TotalOpens() const;

 private:
  struct Entry {
    InodeNumber inode = 0;
    uint64_t cookie = 0;
  };
  struct Inode {
    Attributes attributes;
    InodeNumber parent = 0;  // of a directory
    std::map<std::string, Entry, std::less<>> entries;
    std::map<uint64_t, std::string> names_by_cookie;
    uint64_t next_cookie = 3;
    std::map<uint64_t, Bytes> pages;  // by number; kPageBytes each; an absent one is a hole
    std::string target;               // of a symbolic link
    std::map<std::string, std::string, std::less<>> xattrs;
    uint64_t lookups = 0;
    uint64_t opens = 0;
    bool times_told = false;  // see WriteTimes
    bool linkable = false;    // without a name from the beginning
  };

  Result<Inode*> Find(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  Result<Inode*> FindDirectory(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  // A regular file.
  Result<Inode*> FindFile(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  Result<Entry> FindEntry(const Inode& directory, std::string_view name) SILTFS_REQUIRES(mutex_);
  // A new inode as it would be in `directory`, without a name or links; looked up once.
  Inode& MakeUnnamed(const Inode& directory, uint32_t mode, uint64_t device, Caller caller)
      SILTFS_REQUIRES(mutex_);
  // A new inode under a name that was free; looked up once.
  Result<Inode*> Make(InodeNumber parent, std::string_view name, uint32_t mode, uint64_t device,
                      Caller caller) SILTFS_REQUIRES(mutex_);
  // What is left of a new inode's mode; gives it the access control lists it inherits.
  static uint32_t Inherit(const Inode& directory, Inode& inode, uint32_t mode,
                          const Caller& caller);
  Status SetAcl(Inode& inode, std::string_view name, std::string_view value, XattrMode mode)
      SILTFS_REQUIRES(mutex_);
  void AddEntry(Inode& directory, std::string_view name, InodeNumber inode) SILTFS_REQUIRES(mutex_);
  void RemoveEntry(Inode& directory, std::string_view name) SILTFS_REQUIRES(mutex_);
  // Takes a name's link from the inode, and the inode itself if nothing holds it any more.
  void DropLink(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  void EraseIfUnused(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  bool IsWithin(InodeNumber directory, InodeNumber ancestor) SILTFS_REQUIRES(mutex_);
  Status CheckReplaceable(const Inode& source, const Inode& target) SILTFS_REQUIRES(mutex_);
  // Makes the entry called `name` in `directory` lead to `inode`, whose ".." follows if it is a
  // directory.
  void Repoint(Inode& directory, std::string_view name, Inode& inode) SILTFS_REQUIRES(mutex_);
  static void DropPrivileges(Inode& inode, Privileges privileges);
  Status Exchange(Inode& from, std::string_view name, Inode& to, std::string_view new_name)
      SILTFS_REQUIRES(mutex_);
  void Touch(Inode& inode) SILTFS_REQUIRES(mutex_);  // contents changed
  static void Resize(Inode& file, uint64_t size);
  static void Zero(Inode& file, uint64_t begin, uint64_t end);
  static void UpdateAllocation(Inode& file);

  const Clock clock_;
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, Inode> inodes_ SILTFS_GUARDED_BY(mutex_);
  InodeNumber next_inode_ SILTFS_GUARDED_BY(mutex_) = kRootInode + 1;
};

}  // namespace siltfs::testing
