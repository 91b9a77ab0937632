#include "tests/support/memory_file_system.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/support/memory_xattrs.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kPermissionBits = 07777;

int64_t SystemClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void UpdateSize(MemoryInode& file) {
  file.attributes.size = file.content.size();
  file.attributes.allocated_bytes = file.content.AllocatedBytes();
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() : MemoryFileSystem(SystemClock) {}

MemoryFileSystem::MemoryFileSystem(Clock clock)
    : inodes_(std::move(clock)),
      entries_(mutex_, inodes_),
      maintenance_([this] { return Stats(); }) {}

MemoryFileSystem::MemoryFileSystem(const MemoryInodes& inodes) : MemoryFileSystem(inodes.clock()) {
  const MutexLock lock(mutex_);
  inodes_.Restore(inodes);
}

// --- names

Result<Attributes> MemoryFileSystem::Lookup(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  if (name == ".") {
    SILTFS_ASSIGN_OR_RETURN(MemoryInode * self, inodes_.Find(parent));
    if (self->attributes.links == 0) return Failed(StatusCode::kStale, "was removed", parent);
    ++self->lookups;
    return self->attributes;
  }
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* directory, inodes_.FindDirectory(parent));
  InodeNumber found = directory->parent;
  if (name != "..") {
    SILTFS_ASSIGN_OR_RETURN(const MemoryEntry entry, MemoryInodes::FindEntry(*directory, name));
    found = entry.inode;
  } else if (directory->attributes.links == 0) {
    return Failed(StatusCode::kNotFound, "the directory was removed", parent);
  }
  MemoryInode& inode = inodes_.At(found);
  ++inode.lookups;
  return inode.attributes;
}

void MemoryFileSystem::Forget(InodeNumber inode, uint64_t lookups) {
  const MutexLock lock(mutex_);
  const auto found = inodes_.Find(inode);
  if (!found.ok()) return;
  (*found)->lookups -= std::min(lookups, (*found)->lookups);
  inodes_.EraseIfUnused(inode);
}

Result<Attributes> MemoryFileSystem::MakeNode(InodeNumber parent, std::string_view name,
                                              uint32_t mode, uint64_t device, Caller caller) {
  const MutexLock lock(mutex_);
  if (S_ISDIR(mode) || S_ISLNK(mode))
    return Status(StatusCode::kInvalidArgument, "not the mode of a node");
  if ((mode & S_IFMT) == 0) mode |= S_IFREG;
  if (!S_ISCHR(mode) && !S_ISBLK(mode)) device = 0;
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* inode,
                          inodes_.Make(parent, name, mode, device, caller));
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeDirectory(InodeNumber parent, std::string_view name,
                                                   uint32_t mode, Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(
      const MemoryInode* inode,
      inodes_.Make(parent, name, S_IFDIR | (mode & kPermissionBits), 0, caller));
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeSymlink(InodeNumber parent, std::string_view name,
                                                 std::string_view target, Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * inode,
                          inodes_.Make(parent, name, S_IFLNK | 0777, 0, caller));
  inode->target = target;
  inode->attributes.size = target.size();
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::Link(InodeNumber inode, InodeNumber new_parent,
                                          std::string_view new_name) {
  const MutexLock lock(mutex_);
  return inodes_.Link(inode, new_parent, new_name);
}

Status MemoryFileSystem::Unlink(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  return inodes_.Unlink(parent, name);
}

Status MemoryFileSystem::RemoveDirectory(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  return inodes_.RemoveDirectory(parent, name);
}

Status MemoryFileSystem::Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode) {
  const MutexLock lock(mutex_);
  return inodes_.Rename(parent, name, new_parent, new_name, mode);
}

Result<std::string> MemoryFileSystem::ReadLink(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* link, inodes_.Find(inode));
  if (!S_ISLNK(link->attributes.mode))
    return Failed(StatusCode::kInvalidArgument, "not a symbolic link", inode);
  return link->target;
}

// --- attributes

Result<Attributes> MemoryFileSystem::GetAttributes(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* found, inodes_.Find(inode));
  return found->attributes;
}

Result<Attributes> MemoryFileSystem::SetAttributes(InodeNumber inode,
                                                   const AttributeChange& change) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * found, inodes_.Find(inode));
  Attributes& attributes = found->attributes;
  if (change.size) {
    SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, inodes_.FindFile(inode));
    if (*change.size > kMaxFileBytes)
      return Failed(StatusCode::kFileTooLarge, "the size is too large", inode);
    file->content.Resize(*change.size);
    UpdateSize(*file);
    attributes.mtime = inodes_.Now();
  }
  if (change.mode) SetPermissionBitsOf(*found, *change.mode);
  if (change.uid) attributes.uid = *change.uid;
  if (change.gid) attributes.gid = *change.gid;
  if (change.kill_privileges || change.size || change.uid || change.gid) {
    DropPrivilegesOf(*found,
                     change.kill_privileges ? Privileges::kDropAll : Privileges::kDropCapability);
  }
  if (change.atime) attributes.atime = *change.atime;
  if (change.mtime) attributes.mtime = *change.mtime;
  attributes.ctime = change.ctime ? *change.ctime : inodes_.Now();
  if (change.mtime && change.ctime) found->times_replied = found->opens > 0;
  return attributes;
}

Result<std::string> MemoryFileSystem::GetXattr(InodeNumber inode, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* found, inodes_.Find(inode));
  const auto xattr = found->xattrs.find(name);
  if (xattr == found->xattrs.end())
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", inode);
  return xattr->second;
}

Status MemoryFileSystem::SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                                  XattrMode mode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * found, inodes_.Find(inode));
  return SetXattrOf(*found, name, value, mode, inodes_.clock());
}

Result<std::vector<std::string>> MemoryFileSystem::ListXattrs(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* found, inodes_.Find(inode));
  std::vector<std::string> names;
  for (const auto& [name, value] : found->xattrs) names.push_back(name);
  return names;
}

Status MemoryFileSystem::RemoveXattr(InodeNumber inode, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * found, inodes_.Find(inode));
  return RemoveXattrOf(*found, name, inodes_.clock());
}

// --- directories

Status MemoryFileSystem::ReadDirectory(InodeNumber directory, uint64_t cookie,
                                       const std::function<bool(const DirectoryRecord&)>& visit) {
  struct Copy {
    std::string name;
    InodeNumber inode;
    uint32_t mode;
    uint64_t cookie;
  };
  std::vector<Copy> copies;  // so that `visit` may call back
  {
    const MutexLock lock(mutex_);
    SILTFS_ASSIGN_OR_RETURN(const MemoryInode* found, inodes_.FindDirectory(directory));
    if (cookie < 1) copies.push_back({".", directory, S_IFDIR, 1});
    if (cookie < 2) copies.push_back({"..", found->parent, S_IFDIR, 2});
    for (auto at = found->names_by_cookie.upper_bound(cookie); at != found->names_by_cookie.end();
         ++at) {
      const InodeNumber inode = found->entries.find(at->second)->second.inode;
      copies.push_back({at->second, inode, inodes_.At(inode).attributes.mode & S_IFMT, at->first});
    }
  }
  for (const Copy& copy : copies) {
    if (!visit({.name = copy.name, .inode = copy.inode, .mode = copy.mode, .cookie = copy.cookie}))
      break;
  }
  return {};
}

// --- files

Result<Attributes> MemoryFileSystem::CreateFile(InodeNumber parent, std::string_view name,
                                                uint32_t mode, Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(
      MemoryInode * inode,
      inodes_.Make(parent, name, S_IFREG | (mode & kPermissionBits), 0, caller));
  inode->opens = 1;
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                                       Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* found, inodes_.FindDirectory(directory));
  if (found->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", directory);
  SILTFS_RETURN_IF_ERROR(inodes_.CheckQuota(*found, 1));
  MemoryInode& inode = inodes_.MakeUnnamed(*found, S_IFREG | (mode & kPermissionBits), 0, caller);
  inode.opens = 1;
  inode.linkable = true;
  return inode.attributes;
}

Status MemoryFileSystem::OpenFile(InodeNumber inode, bool truncate) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, inodes_.FindFile(inode));
  ++file->opens;
  if (truncate) {
    file->content.Resize(0);
    UpdateSize(*file);
    DropPrivilegesOf(*file, Privileges::kDropCapability);
    inodes_.Touch(*file);
  }
  return {};
}

void MemoryFileSystem::ReleaseFile(InodeNumber inode) {
  const MutexLock lock(mutex_);
  const auto found = inodes_.Find(inode);
  if (!found.ok() || (*found)->opens == 0) return;
  --(*found)->opens;
  if ((*found)->opens == 0) (*found)->times_replied = false;
  inodes_.EraseIfUnused(inode);
}

Result<size_t> MemoryFileSystem::Read(InodeNumber inode, uint64_t offset, MutableByteView out) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* file, inodes_.FindFile(inode));
  return file->content.Read(offset, out);
}

Status MemoryFileSystem::Write(InodeNumber inode, uint64_t offset, ByteView data,
                               Privileges privileges, WriteTimes times) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, inodes_.FindFile(inode));
  if (offset > kMaxFileBytes || data.size() > kMaxFileBytes - offset) {
    return Failed(StatusCode::kFileTooLarge, "beyond the largest file", inode);
  }
  file->content.Write(offset, data);
  UpdateSize(*file);
  DropPrivilegesOf(*file, privileges);
  if (times == WriteTimes::kNow || !file->times_replied) inodes_.Touch(*file);
  return {};
}

Status MemoryFileSystem::Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset,
                                  uint64_t length, bool keep_size, Privileges privileges) {
  const MutexLock lock(mutex_);
  if (length == 0) return Failed(StatusCode::kInvalidArgument, "nothing to allocate", inode);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, inodes_.FindFile(inode));
  if (offset > kMaxFileBytes || length > kMaxFileBytes - offset) {
    return Failed(StatusCode::kFileTooLarge, "beyond the largest file", inode);
  }
  MemoryContent& content = file->content;
  if (mode == AllocateMode::kZero) content.Zero(offset, offset + length);
  if (!keep_size && offset + length > content.size()) content.Resize(offset + length);
  UpdateSize(*file);
  DropPrivilegesOf(*file, privileges);
  inodes_.Touch(*file);
  return {};
}

Result<std::optional<uint64_t>> MemoryFileSystem::Seek(InodeNumber inode, uint64_t offset,
                                                       SeekTarget target) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* file, inodes_.FindFile(inode));
  return file->content.Seek(offset, target);
}

Result<uint64_t> MemoryFileSystem::CopyRange(InodeNumber source, uint64_t source_offset,
                                             InodeNumber target, uint64_t target_offset,
                                             uint64_t length, Privileges privileges) {
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, GetAttributes(source));
  if (source_offset >= attributes.size) return uint64_t{0};
  length = std::min(length, attributes.size - source_offset);
  if (source == target && source_offset < target_offset + length &&
      target_offset < source_offset + length) {
    return Failed(StatusCode::kInvalidArgument, "the ranges overlap", source);
  }
  Bytes bytes(length);
  SILTFS_RETURN_IF_ERROR(Read(source, source_offset, bytes).status());
  SILTFS_RETURN_IF_ERROR(Write(target, target_offset, bytes, privileges));
  return length;
}

Status MemoryFileSystem::Fsync(InodeNumber inode) {
  const MutexLock lock(mutex_);
  return inodes_.Find(inode).status();
}

// --- the whole file system

Status MemoryFileSystem::SyncAll() { return {}; }

Result<SpaceInfo> MemoryFileSystem::GetSpace() {
  const MutexLock lock(mutex_);
  constexpr uint64_t kTotal = uint64_t{1} << 40;
  uint64_t used = 0;
  for (const auto& [number, inode] : inodes_.all()) used += inode.attributes.allocated_bytes;
  return SpaceInfo{.total_bytes = kTotal,
                   .free_bytes = kTotal - std::min(kTotal, used),
                   .available_bytes = kTotal - std::min(kTotal, used),
                   .inodes = inodes_.all().size()};
}

FileSystemStats MemoryFileSystem::Stats() const {
  const MutexLock lock(mutex_);
  FileSystemStats stats;
  for (const auto& [number, inode] : inodes_.all()) {
    if (inode.attributes.links == 0) continue;
    ++(inode.IsDirectory() ? stats.directories : stats.files);
    if (S_ISREG(inode.attributes.mode)) stats.logical_bytes += inode.attributes.allocated_bytes;
  }
  stats.unique_bytes = stats.stored_bytes = stats.logical_bytes;
  stats.index.engine = "none";
  return stats;
}

Status MemoryFileSystem::Close() { return {}; }

// --- for tests

uint64_t MemoryFileSystem::LookupCount(InodeNumber inode) const {
  const MutexLock lock(mutex_);
  const auto found = inodes_.all().find(inode);
  return found == inodes_.all().end() ? 0 : found->second.lookups;
}

uint64_t MemoryFileSystem::OpenCount(InodeNumber inode) const {
  const MutexLock lock(mutex_);
  const auto found = inodes_.all().find(inode);
  return found == inodes_.all().end() ? 0 : found->second.opens;
}

size_t MemoryFileSystem::InodeCount() const {
  const MutexLock lock(mutex_);
  return inodes_.all().size();
}

uint64_t MemoryFileSystem::TotalLookups() const {
  const MutexLock lock(mutex_);
  uint64_t total = 0;
  for (const auto& [number, inode] : inodes_.all())
    total += number == kRootInode ? 0 : inode.lookups;
  return total;
}

uint64_t MemoryFileSystem::TotalOpens() const {
  const MutexLock lock(mutex_);
  uint64_t total = 0;
  for (const auto& [number, inode] : inodes_.all()) total += inode.opens;
  return total;
}

}  // namespace siltfs::testing
