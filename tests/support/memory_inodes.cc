#include "tests/support/memory_inodes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tests/support/memory_xattrs.h"

namespace siltfs::testing {
namespace {

Status CheckName(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return {StatusCode::kInvalidArgument, fmt::format("\"{}\" is no name for an entry", name)};
  }
  if (name.size() > kMaxNameBytes) return {StatusCode::kNameTooLong, "the name is too long"};
  return {};
}

Status CheckReplaceable(const MemoryInode& source, const MemoryInode& target) {
  const bool source_is_directory = source.IsDirectory();
  const bool target_is_directory = target.IsDirectory();
  const InodeNumber inode = target.attributes.inode;
  if (target_is_directory && !source_is_directory)
    return Failed(StatusCode::kIsADirectory, "is a directory", inode);
  if (!target_is_directory && source_is_directory)
    return Failed(StatusCode::kNotADirectory, "not a directory", inode);
  if (target_is_directory && !target.entries.empty())
    return Failed(StatusCode::kNotEmpty, "not empty", inode);
  return {};
}

}  // namespace

bool MemoryInode::IsDirectory() const { return S_ISDIR(attributes.mode); }

Status Failed(StatusCode code, std::string_view what, InodeNumber inode) {
  return Status(code, std::string(what)).At(fmt::format("inode {}", inode));
}

MemoryInodes::MemoryInodes(Clock clock) : clock_(std::move(clock)) {
  MemoryInode& root = inodes_[kRootInode];
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

void MemoryInodes::Restore(const MemoryInodes& state) {
  inodes_ = state.inodes_;
  next_inode_ = std::max(next_inode_, state.next_inode_);
  std::erase_if(inodes_,
                [](const auto& numbered) { return numbered.second.attributes.links == 0; });
  for (auto& [number, inode] : inodes_) {
    inode.lookups = inode.opens = 0;
    inode.times_replied = inode.linkable = false;
  }
}

Result<MemoryInode*> MemoryInodes::Find(InodeNumber inode) {
  const auto found = inodes_.find(inode);
  if (found == inodes_.end()) return Failed(StatusCode::kStale, "no such inode", inode);
  return &found->second;
}

Result<MemoryInode*> MemoryInodes::FindDirectory(InodeNumber inode) {
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, Find(inode));
  if (!directory->IsDirectory())
    return Failed(StatusCode::kNotADirectory, "not a directory", inode);
  return directory;
}

Result<MemoryInode*> MemoryInodes::FindFile(InodeNumber inode) {
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * file, Find(inode));
  if (file->IsDirectory()) return Failed(StatusCode::kIsADirectory, "is a directory", inode);
  if (!S_ISREG(file->attributes.mode))
    return Failed(StatusCode::kInvalidArgument, "not a regular file", inode);
  return file;
}

Result<MemoryEntry> MemoryInodes::FindEntry(const MemoryInode& directory, std::string_view name) {
  if (name.size() > kMaxNameBytes) return Status(StatusCode::kNameTooLong, "the name is too long");
  const auto found = directory.entries.find(name);
  if (found == directory.entries.end()) {
    return Failed(StatusCode::kNotFound, fmt::format("no entry \"{}\"", name),
                  directory.attributes.inode);
  }
  return found->second;
}

Result<MemoryInode*> MemoryInodes::Make(InodeNumber parent, std::string_view name, uint32_t mode,
                                        uint64_t device, Caller caller) {
  SILTFS_RETURN_IF_ERROR(CheckName(name));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, FindDirectory(parent));
  if (directory->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", parent);
  if (directory->entries.contains(name)) {
    return Failed(StatusCode::kAlreadyExists, fmt::format("there is a \"{}\"", name), parent);
  }
  SILTFS_RETURN_IF_ERROR(CheckQuota(*directory, 1));
  MemoryInode& inode = MakeUnnamed(*directory, mode, device, caller);
  inode.attributes.links = 1;
  if (S_ISDIR(mode)) {
    inode.attributes.links = 2;
    inode.parent = parent;
    ++directory->attributes.links;
  }
  AddEntry(*directory, name, inode.attributes.inode);
  return &inode;
}

Status MemoryInodes::CheckQuota(const MemoryInode& directory, uint64_t files) const {
  if (!HasQuota(directory)) return Status::Ok();
  uint64_t limit = 0;
  uint64_t used = 0;
  for (const auto& [number, inode] : inodes_) {
    if (inode.limits) limit = inode.limits->files;
    if (inode.counted) ++used;
  }
  if (limit == 0 || used + files <= limit) return Status::Ok();
  return Failed(StatusCode::kQuotaExceeded, "the quota has no room", directory.attributes.inode);
}

void MemoryInodes::BeginQuota(MemoryInode& directory, const WantedLimits& limits) {
  if (!directory.limits) CountBelow(directory);
  directory.limits = limits;
}

void MemoryInodes::EndQuota(MemoryInode& directory) {
  directory.limits.reset();
  for (auto& [number, inode] : inodes_) inode.counted = false;
}

void MemoryInodes::CountBelow(const MemoryInode& directory) {
  for (const auto& [name, entry] : directory.entries) {
    MemoryInode& inode = At(entry.inode);
    inode.counted = true;
    CountBelow(inode);
  }
}

MemoryInode& MemoryInodes::MakeUnnamed(const MemoryInode& directory, uint32_t mode, uint64_t device,
                                       Caller caller) {
  MemoryInode& inode = MakeBare(mode);
  inode.counted = HasQuota(directory);
  if (directory.attributes.mode & S_ISGID) {  // a set-group-id directory passes its group on
    caller.gid = directory.attributes.gid;
    if (S_ISDIR(mode)) mode |= S_ISGID;
  }
  if (!S_ISLNK(mode)) mode = InheritAcls(directory, inode, mode, caller);
  const int64_t now = clock_();
  inode.attributes = {.inode = inode.attributes.inode,
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

MemoryInode& MemoryInodes::MakeBare(uint32_t mode) {
  const InodeNumber number = next_inode_++;
  MemoryInode& inode = inodes_[number];
  inode.attributes = {.inode = number, .mode = mode};
  return inode;
}

InodeNumber MemoryInodes::Enter(MemoryInode& directory, std::string_view name, InodeNumber inode) {
  const auto found = directory.entries.find(name);
  if (found == directory.entries.end()) {
    AddEntry(directory, name, inode);
    return 0;
  }
  const InodeNumber replaced = std::exchange(found->second.inode, inode);
  Touch(directory);
  DropLink(replaced);
  return replaced;
}

void MemoryInodes::EraseIfUnused(InodeNumber inode) {
  const MemoryInode& candidate = At(inode);
  if (candidate.attributes.links == 0 && candidate.lookups == 0 && candidate.opens == 0)
    inodes_.erase(inode);
}

Result<Attributes> MemoryInodes::Link(InodeNumber inode, InodeNumber new_parent,
                                      std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * source, Find(inode));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, FindDirectory(new_parent));
  if (source->IsDirectory()) return Failed(StatusCode::kNotPermitted, "is a directory", inode);
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

Status MemoryInodes::Unlink(InodeNumber parent, std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry entry, FindEntry(*directory, name));
  if (At(entry.inode).IsDirectory())
    return Failed(StatusCode::kIsADirectory, "is a directory", entry.inode);
  RemoveEntry(*directory, name);
  DropLink(entry.inode);
  return {};
}

Status MemoryInodes::RemoveDirectory(InodeNumber parent, std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * directory, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry entry, FindEntry(*directory, name));
  const MemoryInode& inode = At(entry.inode);
  if (!inode.IsDirectory())
    return Failed(StatusCode::kNotADirectory, "not a directory", entry.inode);
  if (!inode.entries.empty()) return Failed(StatusCode::kNotEmpty, "not empty", entry.inode);
  RemoveEntry(*directory, name);
  --directory->attributes.links;
  DropLink(entry.inode);
  return {};
}

Status MemoryInodes::Rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                            std::string_view new_name, RenameMode mode) {
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * from, FindDirectory(parent));
  SILTFS_ASSIGN_OR_RETURN(MemoryInode * to, FindDirectory(new_parent));
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry source, FindEntry(*from, name));
  if (to->attributes.links == 0)
    return Failed(StatusCode::kNotFound, "the directory was removed", new_parent);
  MemoryInode& moved = At(source.inode);
  if (moved.IsDirectory() && IsWithin(new_parent, source.inode)) {
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
    SILTFS_RETURN_IF_ERROR(CheckReplaceable(moved, At(replaced)));
    if (moved.IsDirectory()) --to->attributes.links;  // of the replaced directory's ".."
    RemoveEntry(*to, new_name);
    DropLink(replaced);
  }
  RemoveEntry(*from, name);
  AddEntry(*to, new_name, source.inode);
  if (moved.IsDirectory()) {
    --from->attributes.links;
    ++to->attributes.links;
    moved.parent = new_parent;
  }
  moved.attributes.ctime = clock_();
  return {};
}

Status MemoryInodes::Exchange(MemoryInode& from, std::string_view name, MemoryInode& to,
                              std::string_view new_name) {
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry one, FindEntry(from, name));
  SILTFS_ASSIGN_OR_RETURN(const MemoryEntry other, FindEntry(to, new_name));
  if (one.inode == other.inode) return {};  // two names of one file, or one name: nothing to do
  MemoryInode& first = At(one.inode);
  MemoryInode& second = At(other.inode);
  if (second.IsDirectory() && IsWithin(from.attributes.inode, other.inode)) {
    return Failed(StatusCode::kInvalidArgument, "cannot move a directory into itself", other.inode);
  }
  const uint32_t first_counts = first.IsDirectory() ? 1 : 0;
  const uint32_t second_counts = second.IsDirectory() ? 1 : 0;
  from.attributes.links += second_counts - first_counts;
  to.attributes.links += first_counts - second_counts;
  Repoint(from, name, second);
  Repoint(to, new_name, first);
  return {};
}

void MemoryInodes::Repoint(MemoryInode& directory, std::string_view name,
                           MemoryInode& inode) const {
  directory.entries.find(name)->second.inode = inode.attributes.inode;
  if (inode.IsDirectory()) inode.parent = directory.attributes.inode;
  inode.attributes.ctime = clock_();
  Touch(directory);
}

bool MemoryInodes::IsWithin(InodeNumber directory, InodeNumber ancestor) const {
  for (InodeNumber at = directory;; at = inodes_.at(at).parent) {
    if (at == ancestor) return true;
    if (at == kRootInode) return false;
  }
}

void MemoryInodes::AddEntry(MemoryInode& directory, std::string_view name,
                            InodeNumber inode) const {
  const uint64_t cookie = directory.next_cookie++;
  directory.entries.emplace(name, MemoryEntry{inode, cookie});
  directory.names_by_cookie.emplace(cookie, name);
  Touch(directory);
}

void MemoryInodes::RemoveEntry(MemoryInode& directory, std::string_view name) const {
  const auto found = directory.entries.find(name);
  directory.names_by_cookie.erase(found->second.cookie);
  directory.entries.erase(found);
  Touch(directory);
}

void MemoryInodes::DropLink(InodeNumber inode) {
  Attributes& attributes = At(inode).attributes;
  attributes.links = S_ISDIR(attributes.mode) ? 0 : attributes.links - 1;
  attributes.ctime = clock_();
  EraseIfUnused(inode);
}

void MemoryInodes::Touch(MemoryInode& inode) const {
  inode.attributes.mtime = inode.attributes.ctime = clock_();
}

}  // namespace siltfs::testing
