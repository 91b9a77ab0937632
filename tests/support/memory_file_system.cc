#include "tests/support/memory_file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "fs/core/posix_acl.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kPermissionBits = 07777;
constexpr uint32_t kAccessBits = 0777;

bool IsDirectory(const Attributes& attributes) { return S_ISDIR(attributes.mode); }

Status Failed(StatusCode code, std::string_view what, InodeNumber inode) {
  return Status(code, std::string(what)).At(fmt::format("inode {}", inode));
}

Status CheckName(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return {StatusCode::kInvalidArgument, fmt::format("\"{}\" is no name for an entry", name)};
  }
  if (name.size() > kMaxNameBytes) return {StatusCode::kNameTooLong, "the name is too long"};
  return {};
}

int64_t SystemClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() : MemoryFileSystem(SystemClock) {}

MemoryFileSystem::MemoryFileSystem(Clock clock) : clock_(std::move(clock)) {
  const MutexLock lock(mutex_);
  Inode& root = inodes_[kRootInode];
  root.parent = kRootInode;
  const int64_t now = clock_();
  root.attributes = {.inode = kRootInode,
                     .mode = S_IFDIR | 0755,
                     .links = 2,
                     .atime = now,
                     .mtime = now,
                     .ctime = now,
                     .btime = now};
}

// --- finding

Result<MemoryFileSystem::Inode*> MemoryFileSystem::Find(InodeNumber inode) {
  const auto found = inodes_.find(inode);
  if (found == inodes_.end()) return Failed(StatusCode::kStale, "no such inode", inode);
  return &found->second;
}

Result<MemoryFileSystem::Inode*> MemoryFileSystem::FindDirectory(InodeNumber inode) {
  SILTFS_ASSIGN_OR_RETURN(Inode * directory, Find(inode));
  if (!IsDirectory(directory->attributes))
    return Failed(StatusCode::kNotADirectory, "not a directory", inode);
  return directory;
}

Result<MemoryFileSystem::Inode*> MemoryFileSystem::FindFile(InodeNumber inode) {
  SILTFS_ASSIGN_OR_RETURN(Inode * file, Find(inode));
  if (IsDirectory(file->attributes))
    return Failed(StatusCode::kIsADirectory, "is a directory", inode);
  if (!S_ISREG(file->attributes.mode))
    return Failed(StatusCode::kInvalidArgument, "not a regular file", inode);
  return file;
}

Result<MemoryFileSystem::Entry> MemoryFileSystem::FindEntry(const Inode& directory,
                                                            std::string_view name) {
  if (name.size() > kMaxNameBytes) return Status(StatusCode::kNameTooLong, "the name is too long");
  const auto found = directory.entries.find(name);
  if (found == directory.entries.end()) {
    return Failed(StatusCode::kNotFound, fmt::format("no entry \"{}\"", name),
                  directory.attributes.inode);
  }
  return found->second;
}

// --- names

Result<Attributes> MemoryFileSystem::Lookup(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  if (name == ".") {
    SILTFS_ASSIGN_OR_RETURN(Inode * self, Find(parent));
    if (self->attributes.links == 0) return Failed(StatusCode::kStale, "was removed", parent);
    ++self->lookups;
    return self->attributes;
  }
  SILTFS_ASSIGN_OR_RETURN(const Inode* directory, FindDirectory(parent));
  InodeNumber found = directory->parent;
  if (name != "..") {
    SILTFS_ASSIGN_OR_RETURN(const Entry entry, FindEntry(*directory, name));
    found = entry.inode;
  } else if (directory->attributes.links == 0) {
    return Failed(StatusCode::kNotFound, "the directory was removed", parent);
  }
  Inode& inode = inodes_[found];
  ++inode.lookups;
  return inode.attributes;
}

void MemoryFileSystem::Forget(InodeNumber inode, uint64_t lookups) {
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  if (found == inodes_.end()) return;
  found->second.lookups -= std::min(lookups, found->second.lookups);
  EraseIfUnused(inode);
}

Result<MemoryFileSystem::Inode*> MemoryFileSystem::Make(InodeNumber parent, std::string_view name,
                                                        uint32_t mode, uint64_t device,
                                                        Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckName(name));
  SILTFS_ASSIGN_OR_RETURN(Inode * directory, FindDirectory(parent));
  if (directory->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", parent);
  if (directory->entries.contains(name)) {
    return Failed(StatusCode::kAlreadyExists, fmt::format("there is a \"{}\"", name), parent);
  }
  Inode& inode = MakeUnnamed(*directory, mode, device, caller);
  inode.attributes.links = 1;
  if (S_ISDIR(mode)) {
    inode.attributes.links = 2;
    inode.parent = parent;
    ++directory->attributes.links;
  }
  AddEntry(*directory, name, inode.attributes.inode);
  return &inode;
}

MemoryFileSystem::Inode& MemoryFileSystem::MakeUnnamed(const Inode& directory, uint32_t mode,
                                                       uint64_t device, Caller caller) {
  const InodeNumber number = next_inode_++;
  Inode& inode = inodes_[number];
  if (directory.attributes.mode & S_ISGID) {  // a set-group-id directory passes its group on
    caller.gid = directory.attributes.gid;
    if (S_ISDIR(mode)) mode |= S_ISGID;
  }
  if (!S_ISLNK(mode)) mode = Inherit(directory, inode, mode, caller);
  const int64_t now = clock_();
  inode.attributes = {.inode = number,
                      .mode = mode,
                      .uid = caller.uid,
                      .gid = caller.gid,
                      .device = device,
                      .atime = now,
                      .mtime = now,
                      .ctime = now,
                      .btime = now};
  inode.lookups = 1;
  return inode;
}

uint32_t MemoryFileSystem::Inherit(const Inode& directory, Inode& inode, uint32_t mode,
                                   const Caller& caller) {
  const auto inherited = directory.xattrs.find(kDefaultAclName);
  if (inherited == directory.xattrs.end() || !caller.acls) return mode & ~caller.umask;
  PosixAcl acl = *PosixAcl::Decode(inherited->second);
  acl.LimitTo(mode);
  if (!acl.IsEquivalentToMode()) inode.xattrs.emplace(kAccessAclName, acl.Encode());
  if (S_ISDIR(mode)) inode.xattrs.emplace(*inherited);
  return (mode & ~kAccessBits) | acl.PermissionBits();
}

Result<Attributes> MemoryFileSystem::MakeNode(InodeNumber parent, std::string_view name,
                                              uint32_t mode, uint64_t device, Caller caller) {
  const MutexLock lock(mutex_);
  if (S_ISDIR(mode) || S_ISLNK(mode))
    return Status(StatusCode::kInvalidArgument, "not the mode of a node");
  if ((mode & S_IFMT) == 0) mode |= S_IFREG;
  if (!S_ISCHR(mode) && !S_ISBLK(mode)) device = 0;
  SILTFS_ASSIGN_OR_RETURN(const Inode* inode, Make(parent, name, mode, device, caller));
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeDirectory(InodeNumber parent, std::string_view name,
                                                   uint32_t mode, Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* inode,
                          Make(parent, name, S_IFDIR | (mode & kPermissionBits), 0, caller));
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeSymlink(InodeNumber parent, std::string_view name,
                                                 std::string_view target, Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * inode, Make(parent, name, S_IFLNK | 0777, 0, caller));
  inode->target = target;
  inode->attributes.size = target.size();
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::Link(InodeNumber inode, InodeNumber new_parent,
                                          std::string_view new_name) {
  const MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_ASSIGN_OR_RETURN(Inode * source, Find(inode));
  SILTFS_ASSIGN_OR_RETURN(Inode * directory, FindDirectory(new_parent));
  if (IsDirectory(source->attributes))
    return Failed(StatusCode::kNotPermitted, "is a directory", inode);
  const bool nameable = source->attributes.links > 0 || (source->linkable && source->opens > 0);
  if (!nameable || directory->attributes.links == 0) {
    return Failed(StatusCode::kNotFound, "was removed", inode);
  }
  if (directory->entries.contains(new_name)) {
    return Failed(StatusCode::kAlreadyExists, fmt::format("there is a \"{}\"", new_name),
                  new_parent);
  }
  if (source->attributes.links >= kMaxLinks)
    return Failed(StatusCode::kTooManyLinks, "too many links", inode);
  AddEntry(*directory, new_name, inode);
  source->linkable = false;
  ++source->attributes.links;
  ++source->lookups;
  source->attributes.ctime = clock_();
  return source->attributes;
}

Status MemoryFileSystem::Unlink(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * directory, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(const Entry entry, FindEntry(*directory, name));
  if (IsDirectory(inodes_[entry.inode].attributes))
    return Failed(StatusCode::kIsADirectory, "is a directory", entry.inode);
  RemoveEntry(*directory, name);
  DropLink(entry.inode);
  return {};
}

Status MemoryFileSystem::RemoveDirectory(InodeNumber parent, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * directory, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(const Entry entry, FindEntry(*directory, name));
  const Inode& inode = inodes_[entry.inode];
  if (!IsDirectory(inode.attributes))
    return Failed(StatusCode::kNotADirectory, "not a directory", entry.inode);
  if (!inode.entries.empty()) return Failed(StatusCode::kNotEmpty, "not empty", entry.inode);
  RemoveEntry(*directory, name);
  --directory->attributes.links;
  DropLink(entry.inode);
  return {};
}

Status MemoryFileSystem::Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode) {
  const MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_ASSIGN_OR_RETURN(Inode * from, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(Inode * to, FindDirectory(new_parent));
  SILTFS_ASSIGN_OR_RETURN(const Entry source, FindEntry(*from, name));
  if (to->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", new_parent);
  Inode& moved = inodes_[source.inode];
  if (IsDirectory(moved.attributes) && IsWithin(new_parent, source.inode)) {
    return Failed(StatusCode::kInvalidArgument, "cannot move a directory into itself",
                  source.inode);
  }
  if (mode == RenameMode::kExchange) return Exchange(*from, name, *to, new_name);

  const auto target = to->entries.find(new_name);
  if (target != to->entries.end()) {
    const InodeNumber replaced = target->second.inode;
    if (mode == RenameMode::kNoReplace)
      return Failed(StatusCode::kAlreadyExists, "the new name is taken", replaced);
    if (replaced == source.inode)
      return {};  // two names of one file: POSIX requires that nothing happens
    SILTFS_RETURN_IF_ERROR(CheckReplaceable(moved, inodes_[replaced]));
    if (IsDirectory(moved.attributes)) --to->attributes.links;  // of the replaced directory's ".."
    RemoveEntry(*to, new_name);
    DropLink(replaced);
  }
  RemoveEntry(*from, name);
  AddEntry(*to, new_name, source.inode);
  if (IsDirectory(moved.attributes)) {
    --from->attributes.links;
    ++to->attributes.links;
    moved.parent = new_parent;
  }
  moved.attributes.ctime = clock_();
  return {};
}

Status MemoryFileSystem::Exchange(Inode& from, std::string_view name, Inode& to,
                                  std::string_view new_name) {
  SILTFS_ASSIGN_OR_RETURN(const Entry one, FindEntry(from, name));
  SILTFS_ASSIGN_OR_RETURN(const Entry other, FindEntry(to, new_name));
  if (one.inode == other.inode) return {};  // two names of one file, or one name: nothing to do
  Inode& first = inodes_[one.inode];
  Inode& second = inodes_[other.inode];
  if (IsDirectory(second.attributes) && IsWithin(from.attributes.inode, other.inode)) {
    return Failed(StatusCode::kInvalidArgument, "cannot move a directory into itself", other.inode);
  }
  const uint32_t first_counts = IsDirectory(first.attributes) ? 1 : 0;
  const uint32_t second_counts = IsDirectory(second.attributes) ? 1 : 0;
  from.attributes.links += second_counts - first_counts;
  to.attributes.links += first_counts - second_counts;
  Repoint(from, name, second);
  Repoint(to, new_name, first);
  return {};
}

void MemoryFileSystem::Repoint(Inode& directory, std::string_view name, Inode& inode) {
  directory.entries.find(name)->second.inode = inode.attributes.inode;
  if (IsDirectory(inode.attributes)) inode.parent = directory.attributes.inode;
  inode.attributes.ctime = clock_();
  Touch(directory);
}

Status MemoryFileSystem::CheckReplaceable(const Inode& source, const Inode& target) {
  const bool source_is_directory = IsDirectory(source.attributes);
  const bool target_is_directory = IsDirectory(target.attributes);
  const InodeNumber inode = target.attributes.inode;
  if (target_is_directory && !source_is_directory)
    return Failed(StatusCode::kIsADirectory, "is a directory", inode);
  if (!target_is_directory && source_is_directory)
    return Failed(StatusCode::kNotADirectory, "not a directory", inode);
  if (target_is_directory && !target.entries.empty())
    return Failed(StatusCode::kNotEmpty, "not empty", inode);
  return {};
}

bool MemoryFileSystem::IsWithin(InodeNumber directory, InodeNumber ancestor) {
  for (InodeNumber at = directory;; at = inodes_[at].parent) {
    if (at == ancestor) return true;
    if (at == kRootInode) return false;
  }
}

void MemoryFileSystem::AddEntry(Inode& directory, std::string_view name, InodeNumber inode) {
  const uint64_t cookie = directory.next_cookie++;
  directory.entries.emplace(name, Entry{inode, cookie});
  directory.names_by_cookie.emplace(cookie, name);
  Touch(directory);
}

void MemoryFileSystem::RemoveEntry(Inode& directory, std::string_view name) {
  const auto found = directory.entries.find(name);
  directory.names_by_cookie.erase(found->second.cookie);
  directory.entries.erase(found);
  Touch(directory);
}

void MemoryFileSystem::DropLink(InodeNumber inode) {
  Attributes& attributes = inodes_[inode].attributes;
  attributes.links = IsDirectory(attributes) ? 0 : attributes.links - 1;
  attributes.ctime = clock_();
  EraseIfUnused(inode);
}

void MemoryFileSystem::EraseIfUnused(InodeNumber inode) {
  const Inode& candidate = inodes_[inode];
  if (candidate.attributes.links == 0 && candidate.lookups == 0 && candidate.opens == 0)
    inodes_.erase(inode);
}

Result<std::string> MemoryFileSystem::ReadLink(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* link, Find(inode));
  if (!S_ISLNK(link->attributes.mode))
    return Failed(StatusCode::kInvalidArgument, "not a symbolic link", inode);
  return link->target;
}

// --- attributes

void MemoryFileSystem::Touch(Inode& inode) {
  inode.attributes.mtime = inode.attributes.ctime = clock_();
}

Result<Attributes> MemoryFileSystem::GetAttributes(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* found, Find(inode));
  return found->attributes;
}

Result<Attributes> MemoryFileSystem::SetAttributes(InodeNumber inode,
                                                   const AttributeChange& change) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * found, Find(inode));
  Attributes& attributes = found->attributes;
  if (change.size) {
    SILTFS_ASSIGN_OR_RETURN(Inode * file, FindFile(inode));
    if (*change.size > kMaxFileBytes)
      return Failed(StatusCode::kFileTooLarge, "the size is too large", inode);
    Resize(*file, *change.size);
    attributes.mtime = clock_();
  }
  if (change.mode) {
    attributes.mode = (attributes.mode & S_IFMT) | (*change.mode & kPermissionBits);
    if (const auto list = found->xattrs.find(kAccessAclName); list != found->xattrs.end()) {
      PosixAcl acl = *PosixAcl::Decode(list->second);
      acl.SetPermissionBits(attributes.mode);
      list->second = acl.Encode();
    }
  }
  if (change.uid) attributes.uid = *change.uid;
  if (change.gid) attributes.gid = *change.gid;
  if (change.kill_privileges || change.size || change.uid || change.gid) {
    DropPrivileges(*found,
                   change.kill_privileges ? Privileges::kDropAll : Privileges::kDropCapability);
  }
  if (change.atime) attributes.atime = *change.atime;
  if (change.mtime) attributes.mtime = *change.mtime;
  attributes.ctime = change.ctime ? *change.ctime : clock_();
  if (change.mtime && change.ctime) found->times_told = found->opens > 0;
  return attributes;
}

void MemoryFileSystem::DropPrivileges(Inode& inode, Privileges privileges) {
  if (privileges == Privileges::kKeep || IsDirectory(inode.attributes)) return;
  inode.xattrs.erase("security.capability");
  if (privileges == Privileges::kDropCapability) return;
  uint32_t& mode = inode.attributes.mode;
  mode &= ~static_cast<uint32_t>((mode & S_IXGRP) != 0 ? S_ISUID | S_ISGID : S_ISUID);
}

Result<std::string> MemoryFileSystem::GetXattr(InodeNumber inode, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* found, Find(inode));
  const auto xattr = found->xattrs.find(name);
  if (xattr == found->xattrs.end())
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", inode);
  return xattr->second;
}

Status MemoryFileSystem::SetXattr(InodeNumber inode, std::string_view name, std::string_view value,
                                  XattrMode mode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * found, Find(inode));
  if (name.empty() || name.size() > kMaxNameBytes)
    return Failed(StatusCode::kBufferTooSmall, "bad name", inode);
  if (value.size() > kMaxXattrValueBytes)
    return Failed(StatusCode::kNoSpace, "the value is too long", inode);
  const bool exists = found->xattrs.contains(name);
  if (mode == XattrMode::kCreate && exists)
    return Failed(StatusCode::kAlreadyExists, "the name is taken", inode);
  if (mode == XattrMode::kReplace && !exists) {
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", inode);
  }
  if (IsAclName(name)) return SetAcl(*found, name, value, mode);
  found->xattrs.insert_or_assign(std::string(name), std::string(value));
  found->attributes.ctime = clock_();
  return {};
}

Status MemoryFileSystem::SetAcl(Inode& inode, std::string_view name, std::string_view value,
                                XattrMode mode) {
  Attributes& attributes = inode.attributes;
  if (S_ISLNK(attributes.mode))
    return Failed(StatusCode::kUnsupported, "a symbolic link", attributes.inode);
  const bool access = name == kAccessAclName;
  if (!access && !IsDirectory(attributes))
    return Failed(StatusCode::kAccessDenied, "not a directory", attributes.inode);
  SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(value));
  if (access) attributes.mode = (attributes.mode & ~kAccessBits) | acl.PermissionBits();
  if (access && mode == XattrMode::kSetWithoutSetGid) attributes.mode &= ~uint32_t{S_ISGID};
  if (access && acl.IsEquivalentToMode()) {
    inode.xattrs.erase(std::string(name));
  } else {
    inode.xattrs.insert_or_assign(std::string(name), acl.Encode());
  }
  attributes.ctime = clock_();
  return {};
}

Result<std::vector<std::string>> MemoryFileSystem::ListXattrs(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* found, Find(inode));
  std::vector<std::string> names;
  for (const auto& [name, value] : found->xattrs) names.push_back(name);
  return names;
}

Status MemoryFileSystem::RemoveXattr(InodeNumber inode, std::string_view name) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * found, Find(inode));
  const auto xattr = found->xattrs.find(name);
  if (xattr == found->xattrs.end() && IsAclName(name)) return {};
  if (xattr == found->xattrs.end())
    return Failed(StatusCode::kNoAttribute, "no such extended attribute", inode);
  found->xattrs.erase(xattr);
  found->attributes.ctime = clock_();
  return {};
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
    SILTFS_ASSIGN_OR_RETURN(const Inode* found, FindDirectory(directory));
    if (cookie < 1) copies.push_back({".", directory, S_IFDIR, 1});
    if (cookie < 2) copies.push_back({"..", found->parent, S_IFDIR, 2});
    for (auto at = found->names_by_cookie.upper_bound(cookie); at != found->names_by_cookie.end();
         ++at) {
      const InodeNumber inode = found->entries.find(at->second)->second.inode;
      copies.push_back({at->second, inode, inodes_[inode].attributes.mode & S_IFMT, at->first});
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
  SILTFS_ASSIGN_OR_RETURN(Inode * inode,
                          Make(parent, name, S_IFREG | (mode & kPermissionBits), 0, caller));
  inode->opens = 1;
  return inode->attributes;
}

Result<Attributes> MemoryFileSystem::MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                                       Caller caller) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* found, FindDirectory(directory));
  if (found->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", directory);
  Inode& inode = MakeUnnamed(*found, S_IFREG | (mode & kPermissionBits), 0, caller);
  inode.opens = 1;
  inode.linkable = true;
  return inode.attributes;
}

Status MemoryFileSystem::OpenFile(InodeNumber inode, bool truncate) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * file, FindFile(inode));
  ++file->opens;
  if (truncate) {
    Resize(*file, 0);
    Touch(*file);
  }
  return {};
}

void MemoryFileSystem::ReleaseFile(InodeNumber inode) {
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  if (found == inodes_.end() || found->second.opens == 0) return;
  --found->second.opens;
  if (found->second.opens == 0) found->second.times_told = false;
  EraseIfUnused(inode);
}

Result<size_t> MemoryFileSystem::Read(InodeNumber inode, uint64_t offset, MutableByteView out) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* file, FindFile(inode));
  if (offset >= file->attributes.size) return size_t{0};
  const auto count =
      static_cast<size_t>(std::min<uint64_t>(out.size(), file->attributes.size - offset));
  for (size_t done = 0; done < count;) {
    const uint64_t at = offset + done;
    const size_t within = at % kPageBytes;
    const size_t run = std::min<size_t>(kPageBytes - within, count - done);
    const auto page = file->pages.find(at / kPageBytes);
    if (page == file->pages.end()) {
      std::fill_n(out.begin() + static_cast<ptrdiff_t>(done), run, uint8_t{0});
    } else {
      std::copy_n(page->second.begin() + static_cast<ptrdiff_t>(within), run,
                  out.begin() + static_cast<ptrdiff_t>(done));
    }
    done += run;
  }
  return count;
}

Status MemoryFileSystem::Write(InodeNumber inode, uint64_t offset, ByteView data,
                               Privileges privileges, WriteTimes times) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(Inode * file, FindFile(inode));
  if (offset > kMaxFileBytes || data.size() > kMaxFileBytes - offset) {
    return Failed(StatusCode::kFileTooLarge, "beyond the largest file", inode);
  }
  for (size_t done = 0; done < data.size();) {
    const uint64_t at = offset + done;
    const size_t within = at % kPageBytes;
    const size_t run = std::min<size_t>(kPageBytes - within, data.size() - done);
    Bytes& page = file->pages[at / kPageBytes];
    page.resize(kPageBytes);
    std::copy_n(data.begin() + static_cast<ptrdiff_t>(done), run,
                page.begin() + static_cast<ptrdiff_t>(within));
    done += run;
  }
  file->attributes.size = std::max(file->attributes.size, offset + data.size());
  UpdateAllocation(*file);
  DropPrivileges(*file, privileges);
  if (times == WriteTimes::kNow || !file->times_told) Touch(*file);
  return {};
}

void MemoryFileSystem::Zero(Inode& file, uint64_t begin, uint64_t end) {
  for (auto page = file.pages.lower_bound(begin / kPageBytes);
       page != file.pages.end() && page->first * kPageBytes < end;) {
    const uint64_t at = page->first * kPageBytes;
    const uint64_t from = std::max(begin, at) - at;
    const uint64_t to = std::min(end, at + kPageBytes) - at;
    if (to - from == kPageBytes) {
      page = file.pages.erase(page);
      continue;
    }
    std::fill(page->second.begin() + static_cast<ptrdiff_t>(from),
              page->second.begin() + static_cast<ptrdiff_t>(to), uint8_t{0});
    ++page;
  }
}

void MemoryFileSystem::Resize(Inode& file, uint64_t size) {
  if (size < file.attributes.size) {
    file.pages.erase(file.pages.lower_bound((size + kPageBytes - 1) / kPageBytes),
                     file.pages.end());
    const auto last = file.pages.find(size / kPageBytes);
    if (last != file.pages.end()) {  // removed bytes must not reappear when the file grows
      std::fill(last->second.begin() + static_cast<ptrdiff_t>(size % kPageBytes),
                last->second.end(), uint8_t{0});
    }
  }
  file.attributes.size = size;
  UpdateAllocation(file);
}

void MemoryFileSystem::UpdateAllocation(Inode& file) {
  file.attributes.allocated_bytes = file.pages.size() * kPageBytes;
  if (!file.pages.empty()) {  // the last page may extend beyond the size
    const uint64_t end = (file.pages.rbegin()->first + 1) * kPageBytes;
    if (end > file.attributes.size) file.attributes.allocated_bytes -= end - file.attributes.size;
  }
}

Status MemoryFileSystem::Allocate(InodeNumber inode, AllocateMode mode, uint64_t offset,
                                  uint64_t length, bool keep_size, Privileges privileges) {
  const MutexLock lock(mutex_);
  if (length == 0) return Failed(StatusCode::kInvalidArgument, "nothing to allocate", inode);
  SILTFS_ASSIGN_OR_RETURN(Inode * file, FindFile(inode));
  if (offset > kMaxFileBytes || length > kMaxFileBytes - offset) {
    return Failed(StatusCode::kFileTooLarge, "beyond the largest file", inode);
  }
  if (mode == AllocateMode::kZero) Zero(*file, offset, offset + length);
  if (!keep_size && offset + length > file->attributes.size) Resize(*file, offset + length);
  UpdateAllocation(*file);
  DropPrivileges(*file, privileges);
  Touch(*file);
  return {};
}

Result<std::optional<uint64_t>> MemoryFileSystem::Seek(InodeNumber inode, uint64_t offset,
                                                       SeekTarget target) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const Inode* file, FindFile(inode));
  const uint64_t size = file->attributes.size;
  if (offset >= size) return std::optional<uint64_t>();
  for (; offset < size; offset = (offset / kPageBytes + 1) * kPageBytes) {
    const bool is_hole = !file->pages.contains(offset / kPageBytes);
    if (is_hole == (target == SeekTarget::kHole)) return std::optional<uint64_t>(offset);
  }
  if (target == SeekTarget::kHole) return std::optional<uint64_t>(size);
  return std::optional<uint64_t>();
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
  return Find(inode).status();
}

// --- the whole file system

Status MemoryFileSystem::SyncAll() { return {}; }

Result<SpaceInfo> MemoryFileSystem::GetSpace() {
  const MutexLock lock(mutex_);
  constexpr uint64_t kTotal = uint64_t{1} << 40;
  uint64_t used = 0;
  for (const auto& [number, inode] : inodes_) used += inode.attributes.allocated_bytes;
  return SpaceInfo{.total_bytes = kTotal,
                   .free_bytes = kTotal - std::min(kTotal, used),
                   .available_bytes = kTotal - std::min(kTotal, used),
                   .inodes = inodes_.size()};
}

Result<RecompressionReport> MemoryFileSystem::Recompress() { return RecompressionReport(); }

Result<ScrubReport> MemoryFileSystem::Scrub(ScrubMode /*mode*/) {
  ScrubReport report;
  report.complete = true;
  return report;
}

Result<GarbageReport> MemoryFileSystem::CollectGarbage(bool dry_run) {
  return GarbageReport{.dry_run = dry_run};
}

Result<FileSystemStats> MemoryFileSystem::GetStats() {
  const MutexLock lock(mutex_);
  FileSystemStats stats;
  for (const auto& [number, inode] : inodes_) {
    if (inode.attributes.links == 0) continue;
    ++(IsDirectory(inode.attributes) ? stats.directories : stats.files);
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
  const auto found = inodes_.find(inode);
  return found == inodes_.end() ? 0 : found->second.lookups;
}

uint64_t MemoryFileSystem::OpenCount(InodeNumber inode) const {
  const MutexLock lock(mutex_);
  const auto found = inodes_.find(inode);
  return found == inodes_.end() ? 0 : found->second.opens;
}

size_t MemoryFileSystem::InodeCount() const {
  const MutexLock lock(mutex_);
  return inodes_.size();
}

uint64_t MemoryFileSystem::TotalLookups() const {
  const MutexLock lock(mutex_);
  uint64_t total = 0;
  for (const auto& [number, inode] : inodes_) total += number == kRootInode ? 0 : inode.lookups;
  return total;
}

uint64_t MemoryFileSystem::TotalOpens() const {
  const MutexLock lock(mutex_);
  uint64_t total = 0;
  for (const auto& [number, inode] : inodes_) total += inode.opens;
  return total;
}

}  // namespace siltfs::testing
