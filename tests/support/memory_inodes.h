// The inodes of MemoryFileSystem, and the names that connect them.
//
// Not thread-safe: the mutex of MemoryFileSystem guards the inodes. Errors: those of FileSystem. A
// reference to an inode is valid until this inode is erased.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "fs/interface/directory_quotas.h"
#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "tests/support/memory_content.h"

namespace siltfs::testing {

struct MemoryEntry {
  InodeNumber inode = 0;
  uint64_t cookie = 0;
};

struct MemoryInode {
  // For a regular file, size and allocated_bytes are those of `content`.
  Attributes attributes;
  InodeNumber parent = 0;  // of a directory
  std::map<std::string, MemoryEntry, std::less<>> entries;
  std::map<uint64_t, std::string> names_by_cookie;
  uint64_t next_cookie = 3;
  MemoryContent content;  // of a regular file
  std::string target;     // of a symbolic link
  std::map<std::string, std::string, std::less<>> xattrs;
  uint64_t lookups = 0;
  uint64_t opens = 0;
  bool times_replied = false;  // see WriteTimes
  bool linkable = false;       // created without a name
  // The state of a source file that this file was put from, and the file's ctime at that time. They
  // count only as long as the file has this ctime.
  std::optional<SourceFacts> source;
  int64_t source_ctime = 0;
  std::optional<WantedLimits> limits;  // of the quota of a directory
  bool counted = false;                // below a directory with a quota

  bool IsDirectory() const;
};

// An error about an inode.
Status Failed(StatusCode code, std::string_view what, InodeNumber inode);

class MemoryInodes {
 public:
  using Clock = std::function<int64_t()>;  // nanoseconds since 1970

  // Makes the root.
  explicit MemoryInodes(Clock clock);

  int64_t Now() const { return clock_(); }
  const Clock& clock() const { return clock_; }
  const std::unordered_map<InodeNumber, MemoryInode>& all() const { return inodes_; }
  // Makes all inodes what they are in `state`; those without a name are left out. Nothing has
  // looked up or opened them. The numbers of later inodes stay new.
  void Restore(const MemoryInodes& state);

  Result<MemoryInode*> Find(InodeNumber inode);
  Result<MemoryInode*> FindDirectory(InodeNumber inode);
  // The inode; an error unless it is a regular file.
  Result<MemoryInode*> FindFile(InodeNumber inode);
  // The inode that an entry refers to.
  MemoryInode& At(InodeNumber inode) { return inodes_.at(inode); }
  static Result<MemoryEntry> FindEntry(const MemoryInode& directory, std::string_view name);

  // Whether the inodes of the directory count against a quota.
  static bool HasQuota(const MemoryInode& directory) {
    return directory.limits || directory.counted;
  }
  // kQuotaExceeded if the directory counts against a quota that has no room for so many inodes. One
  // directory at most has a quota, and only its limit of files is known here.
  Status CheckQuota(const MemoryInode& directory, uint64_t files) const;
  // The inodes below the directory count, or no inode does.
  void BeginQuota(MemoryInode& directory, const WantedLimits& limits);
  void EndQuota(MemoryInode& directory);
  void Erase(InodeNumber inode) { inodes_.erase(inode); }

  // Makes an inode with this name, which must be free. It counts as looked up once.
  Result<MemoryInode*> Make(InodeNumber parent, std::string_view name, uint32_t mode,
                            uint64_t device, Caller caller);
  // Makes an inode with the attributes of one in `directory`, but without a name or links. It
  // counts as looked up once.
  MemoryInode& MakeUnnamed(const MemoryInode& directory, uint32_t mode, uint64_t device,
                           Caller caller);
  // Makes an inode without a name, links, owner or times, which nothing has looked up.
  MemoryInode& MakeBare(uint32_t mode);
  void EraseIfUnused(InodeNumber inode);
  // Gives the name to an inode, and takes it from the inode that has it. Returns that inode's
  // number; 0 if the name was free. Does not change the inode's own attributes.
  InodeNumber Enter(MemoryInode& directory, std::string_view name, InodeNumber inode);

  // As the functions of FileSystem.
  Result<Attributes> Link(InodeNumber inode, InodeNumber new_parent, std::string_view new_name);
  Status Unlink(InodeNumber parent, std::string_view name);
  Status RemoveDirectory(InodeNumber parent, std::string_view name);
  Status Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                std::string_view new_name, RenameMode mode);

  // The contents of the inode have changed: sets its times.
  void Touch(MemoryInode& inode) const;

 private:
  void CountBelow(const MemoryInode& directory);
  void AddEntry(MemoryInode& directory, std::string_view name, InodeNumber inode) const;
  void RemoveEntry(MemoryInode& directory, std::string_view name) const;
  // Removes a link from the inode, and the inode if it is no longer used.
  void DropLink(InodeNumber inode);
  bool IsWithin(InodeNumber directory, InodeNumber ancestor) const;
  Status Exchange(MemoryInode& from, std::string_view name, MemoryInode& to,
                  std::string_view new_name);
  // Points the entry `name` of `directory` to `inode`. If `inode` is a directory, points its ".."
  // to `directory`.
  void Repoint(MemoryInode& directory, std::string_view name, MemoryInode& inode) const;

  const Clock clock_;
  std::unordered_map<InodeNumber, MemoryInode> inodes_;
  InodeNumber next_inode_ = kRootInode + 1;
};

}  // namespace siltfs::testing
