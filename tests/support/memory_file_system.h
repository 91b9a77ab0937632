// A simple FileSystem: it keeps everything in maps under one mutex and stores nothing persistently.
// It replaces the core in tests of the layers above, and gives the expected results in tests of the
// core.
//
// Additional functions for tests return the lookup and open counts of an inode, and the number of
// inodes that still exist. Times come from `clock`, which a test may replace to get the same times
// twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "store/base/thread_annotations.h"
#include "tests/support/memory_entries.h"
#include "tests/support/memory_inodes.h"
#include "tests/support/memory_maintenance.h"
#include "tests/support/memory_snapshots.h"
#include "tests/support/memory_transfers.h"
#include "tests/support/memory_usage.h"

namespace siltfs::testing {

class MemoryFileSystem : public FileSystem {
 public:
  using Clock = MemoryInodes::Clock;

  static constexpr uint64_t kPageBytes = MemoryContent::kPageBytes;

  MemoryFileSystem();
  explicit MemoryFileSystem(Clock clock);
  // Has copies of these inodes, which nothing has looked up or opened.
  explicit MemoryFileSystem(const MemoryInodes& inodes);

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
  Status CheckOpenForWriting(InodeNumber) const override { return Status::Ok(); }
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
  EntryStore& entries() override { return entries_; }
  ContentSource& contents() override { return contents_; }
  Snapshots& snapshots() override { return snapshots_; }
  SnapshotTransfers& transfers() override { return transfers_; }
  StoreMaintenance& maintenance() override { return maintenance_; }
  UsageMeasures& usage() override { return usage_; }
  Status Close() override;

  // --- for tests
  uint64_t LookupCount(InodeNumber inode) const;
  uint64_t OpenCount(InodeNumber inode) const;
  size_t InodeCount() const;  // including those kept alive only by a lookup or an open
  // The sum over all inodes except the root, which the kernel never forgets.
  uint64_t TotalLookups() const;
  uint64_t TotalOpens() const;

 protected:
  // A file system with snapshots derives from this class.
  mutable Mutex mutex_;
  MemoryInodes inodes_ SILTFS_GUARDED_BY(mutex_);
  MemoryEntries entries_;

 private:
  FileSystemStats Stats() const;

  MemoryContents contents_;
  MemorySnapshots snapshots_;
  MemoryTransfers transfers_;
  MemoryMaintenance maintenance_;
  MemoryUsage usage_;
};

}  // namespace siltfs::testing
