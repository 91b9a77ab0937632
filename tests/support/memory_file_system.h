// A simple FileSystem: it keeps everything in maps under one mutex and stores nothing persistently.
// It replaces the core in tests of the layers above, and gives the expected results in tests of the
// core.
//
// Additional functions for tests: the lookup and open counts of an inode, and the remaining inodes.
// Times come from `clock`, which a test may replace to get the same times twice.
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

  static constexpr uint64_t kPageBytes = 4096;  // holes consist of whole pages

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
  Result<RecompressionReport> Recompress() override;  // nothing to recompress
  void StopRecompression() override {}
  Result<GarbageReport> CollectGarbage(bool dry_run) override;  // no garbage
  void StopCollecting() override {}
  Result<ScrubReport> Scrub(ScrubMode mode) override;  // nothing to verify
  void InterruptScrub() override {}
  void StopScrubbing() override {}
  Status Close() override;

  // --- for tests
  uint64_t LookupCount(InodeNumber inode) const;
  uint64_t OpenCount(InodeNumber inode) const;
  size_t InodeCount() const;  // including those kept alive only by a lookup or an open
  // The sum over all inodes except the root, which the kernel never forgets.
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
    std::map<uint64_t, Bytes> pages;  // by number; kPageBytes each; absent: a hole
    std::string target;               // of a symbolic link
    std::map<std::string, std::string, std::less<>> xattrs;
    uint64_t lookups = 0;
    uint64_t opens = 0;
    bool times_told = false;  // see WriteTimes
    bool linkable = false;    // created without a name
  };

  Result<Inode*> Find(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  Result<Inode*> FindDirectory(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  // The inode; an error unless it is a regular file.
  Result<Inode*> FindFile(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  Result<Entry> FindEntry(const Inode& directory, std::string_view name) SILTFS_REQUIRES(mutex_);
  // Makes an inode with the attributes of one in `directory`, but without a name or links. It
  // counts as looked up once.
  Inode& MakeUnnamed(const Inode& directory, uint32_t mode, uint64_t device, Caller caller)
      SILTFS_REQUIRES(mutex_);
  // Makes an inode with this name, which must be free. It counts as looked up once.
  Result<Inode*> Make(InodeNumber parent, std::string_view name, uint32_t mode, uint64_t device,
                      Caller caller) SILTFS_REQUIRES(mutex_);
  // Gives a new inode its inherited access control lists; returns its resulting mode.
  static uint32_t Inherit(const Inode& directory, Inode& inode, uint32_t mode,
                          const Caller& caller);
  Status SetAcl(Inode& inode, std::string_view name, std::string_view value, XattrMode mode)
      SILTFS_REQUIRES(mutex_);
  void AddEntry(Inode& directory, std::string_view name, InodeNumber inode) SILTFS_REQUIRES(mutex_);
  void RemoveEntry(Inode& directory, std::string_view name) SILTFS_REQUIRES(mutex_);
  // Removes a link from the inode, and the inode if it is no longer used.
  void DropLink(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  void EraseIfUnused(InodeNumber inode) SILTFS_REQUIRES(mutex_);
  bool IsWithin(InodeNumber directory, InodeNumber ancestor) SILTFS_REQUIRES(mutex_);
  Status CheckReplaceable(const Inode& source, const Inode& target) SILTFS_REQUIRES(mutex_);
  // Points the entry `name` of `directory` to `inode`, and the ".." of `inode` to `directory` if it
  // is a directory.
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
