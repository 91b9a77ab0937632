// Names: lookup, creation, links and removal.
#include <fmt/format.h>

#include <limits>

#include "fs/core/file_system_impl.h"
#include "fs/meta/schema.h"

namespace siltfs {
namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kDirectoryType = 0040000;
constexpr uint32_t kRegularType = 0100000;
constexpr uint32_t kSymlinkType = 0120000;
constexpr uint32_t kSetGidBit = 02000;

}  // namespace

Status FileSystemImpl::CheckName(std::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Status(StatusCode::kNameTooLong, "the name is longer than 255 bytes");
  if (!IsName(name)) return Status(StatusCode::kInvalidArgument, "this cannot be a name");
  return Status::Ok();
}

Result<std::optional<NameEntry>> FileSystemImpl::FindName(InodeNumber directory,
                                                          std::string_view name) const {
  SILTFS_ASSIGN_OR_RETURN(auto value, metadata_->Get(DirectoryEntryKey(directory, name)));
  if (!value) return std::optional<NameEntry>();
  SILTFS_ASSIGN_OR_RETURN(NameEntry entry, NameEntry::Decode(*value));
  return std::optional<NameEntry>(entry);
}

Status FileSystemImpl::CheckDirectory(const Inode& directory) const {
  if (!directory.record.IsDirectory())
    return Status(StatusCode::kNotADirectory, "is not a directory");
  if (directory.record.links == 0)
    return Status(StatusCode::kNotFound, "the directory was removed");
  return Status::Ok();
}

void FileSystemImpl::PutName(Inode& directory, std::string_view name, const Inode& child,
                             uint64_t cookie, Change& change) {
  const uint32_t type = child.record.type();
  change.Put(DirectoryEntryKey(directory.number, name),
             NameEntry{child.number, type, cookie}.Encode());
  change.Put(DirectoryCookieKey(directory.number, cookie),
             CookieEntry{child.number, type, std::string(name)}.Encode());
}

void FileSystemImpl::AddName(Inode& directory, std::string_view name, const Inode& child,
                             Change& change) {
  PutName(directory, name, child, directory.record.next_cookie++, change);
  ++directory.record.entries;
}

void FileSystemImpl::DropName(Inode& directory, std::string_view name, const NameEntry& entry,
                              Change& change) {
  change.Delete(DirectoryEntryKey(directory.number, name));
  change.Delete(DirectoryCookieKey(directory.number, entry.cookie));
  --directory.record.entries;
}

Result<Attributes> FileSystemImpl::Lookup(InodeNumber parent, std::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Status(StatusCode::kNameTooLong, "the name is longer than 255 bytes");
  if (name == ".") return LookupSelf(parent);
  if (name == "..") return LookupParent(parent);
  InodeNumber child = 0;
  SILTFS_RETURN_IF_ERROR(WithLoaded(parent, false, [&](const Inode& directory) -> Status {
    if (!directory.record.IsDirectory())
      return Status(StatusCode::kNotADirectory, "is not a directory");
    SILTFS_ASSIGN_OR_RETURN(auto entry, FindName(parent, name));
    if (!entry) return Status(StatusCode::kNotFound, "there is no such name");
    child = entry->inode;
    // While the directory is locked, the name cannot be removed, so the inode still exists.
    lookups_.Add(child);
    return Status::Ok();
  }));
  auto attributes = GetAttributes(child);
  if (!attributes.ok()) Forget(child, 1);
  return attributes;
}

Result<Attributes> FileSystemImpl::LookupSelf(InodeNumber number) {
  Attributes attributes;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&](const Inode& inode) {
    if (inode.record.links == 0)
      return Status(StatusCode::kStale, fmt::format("inode {} was removed", number));
    attributes = AttributesOf(inode);
    lookups_.Add(number);  // the inode is locked, so it still exists
    return Status::Ok();
  }));
  return attributes;
}

Result<Attributes> FileSystemImpl::LookupParent(InodeNumber directory) {
  InodeNumber parent = 0;
  Status found = WithLoaded(directory, false, [&](const Inode& inode) -> Status {
    SILTFS_RETURN_IF_ERROR(CheckDirectory(inode));
    parent = inode.record.parent;
    // While the directory is locked it cannot move, so its parent is not empty and stays.
    lookups_.Add(parent);
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(found);
  auto attributes = GetAttributes(parent);
  if (!attributes.ok()) Forget(parent, 1);
  return attributes;
}

void FileSystemImpl::Forget(InodeNumber inode, uint64_t lookups) {
  if (lookups_.Remove(inode, lookups) == 0) RemoveIfUnused(inode);
}

Result<Attributes> FileSystemImpl::MakeInode(InodeNumber parent, std::string_view name,
                                             const NewInode& wanted) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckRoom(kBytesPerName));
  if (!wanted.temporary) SILTFS_RETURN_IF_ERROR(CheckName(name));
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr directory = inodes_.Get(parent);
  InodeLock lock(directory, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(*directory));
  SILTFS_RETURN_IF_ERROR(CheckDirectory(*directory));
  if (!wanted.temporary) {
    SILTFS_ASSIGN_OR_RETURN(auto taken, FindName(parent, name));
    if (taken) return Status(StatusCode::kAlreadyExists, "the name is taken");
  }
  std::shared_ptr<const PosixAcl> inherited;
  if (wanted.caller.acls) {
    SILTFS_ASSIGN_OR_RETURN(inherited, DefaultAclOf(*directory));
  }
  SILTFS_ASSIGN_OR_RETURN(InodeNumber number, ids_->NextInode());

  const int64_t now = Now();
  // The new inode's number is above all others, so the inode comes after its directory in the lock
  // order.
  InodePtr inode = inodes_.Get(number);
  InodeLock inode_lock(inode, InodeLock::Mode::kExclusive);
  InodeRecord& record = inode->record;
  record.mode = wanted.mode;
  record.links = wanted.temporary ? 0 : 1;
  record.uid = wanted.caller.uid;
  record.gid = wanted.caller.gid;
  record.device = wanted.device;
  record.target = wanted.target;
  record.atime = record.mtime = record.ctime = record.btime = now;
  const bool is_directory = record.IsDirectory();
  if ((directory->record.mode & kSetGidBit) != 0) {
    record.gid = directory->record.gid;
    if (is_directory) record.mode |= kSetGidBit;
  }
  Change change;
  if (is_directory) {
    if (directory->record.links >= kMaxLinks)
      return Status(StatusCode::kTooManyLinks, "the directory is full");
    record.links = 2;
    record.parent = parent;
    record.next_cookie = kFirstCookie;
    ++directory->record.links;
  }
  inode->loaded = inode->overlay_loaded = true;
  inode->overlay = Overlay(&overlay_raw_bytes_);
  if (wanted.open) inode->open_count = 1;
  if (!record.IsSymlink()) SetFirstMode(*inode, inherited, wanted.caller.umask, change);

  Save(*inode, change);
  if (wanted.temporary) {
    inode->linkable = true;
    change.Put(OrphanKey(number), "");
    SetOrphan(number, true);
  } else {
    AddName(*directory, name, *inode, change);
    directory->record.mtime = directory->record.ctime = now;
    Save(*directory, change);
  }
  change.Count(is_directory ? Counter::kDirectories : Counter::kFiles, 1);
  lookups_.Add(number);
  const Attributes attributes = AttributesOf(*inode);
  Status applied = Apply(change);
  if (!applied.ok()) {
    lookups_.Remove(number, 1);
    inode->open_count = 0;
    SetOrphan(number, false);
    inodes_.Erase(number);
    return applied;
  }
  return attributes;
}

Result<Attributes> FileSystemImpl::MakeNode(InodeNumber parent, std::string_view name,
                                            uint32_t mode, uint64_t device, Caller caller) {
  if ((mode & kTypeMask) == 0) mode |= kRegularType;
  if ((mode & kTypeMask) == kDirectoryType || (mode & kTypeMask) == kSymlinkType) {
    return Status(StatusCode::kInvalidArgument, "directories and links are not made as nodes");
  }
  return MakeInode(parent, name,
                   {.mode = mode,
                    .device = device,
                    .caller = caller,
                    .target = {},
                    .open = false,
                    .temporary = false});
}

Result<Attributes> FileSystemImpl::MakeDirectory(InodeNumber parent, std::string_view name,
                                                 uint32_t mode, Caller caller) {
  mode = (mode & ~kTypeMask) | kDirectoryType;
  return MakeInode(parent, name,
                   {.mode = mode,
                    .device = 0,
                    .caller = caller,
                    .target = {},
                    .open = false,
                    .temporary = false});
}

Result<Attributes> FileSystemImpl::MakeSymlink(InodeNumber parent, std::string_view name,
                                               std::string_view target, Caller caller) {
  if (target.empty()) return Status(StatusCode::kNotFound, "a link needs a target");
  if (target.size() > 4095)
    return Status(StatusCode::kNameTooLong, "the link's target is longer than 4,095 bytes");
  return MakeInode(parent, name,
                   {.mode = kSymlinkType | 0777,
                    .device = 0,
                    .caller = caller,
                    .target = target,
                    .open = false,
                    .temporary = false});
}

Result<Attributes> FileSystemImpl::CreateFile(InodeNumber parent, std::string_view name,
                                              uint32_t mode, Caller caller) {
  mode = (mode & ~kTypeMask) | kRegularType;
  return MakeInode(parent, name,
                   {.mode = mode,
                    .device = 0,
                    .caller = caller,
                    .target = {},
                    .open = true,
                    .temporary = false});
}

Result<Attributes> FileSystemImpl::MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                                     Caller caller) {
  mode = (mode & ~kTypeMask) | kRegularType;
  return MakeInode(
      directory, {},
      {.mode = mode, .device = 0, .caller = caller, .target = {}, .open = true, .temporary = true});
}

Result<Attributes> FileSystemImpl::Link(InodeNumber number, InodeNumber new_parent,
                                        std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckRoom(kBytesPerName));
  SILTFS_RETURN_IF_ERROR(CheckName(new_name));
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodePtr directory = inodes_.Get(new_parent);
  InodeLock lock({inode, directory}, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(*inode));
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(*directory));
  SILTFS_RETURN_IF_ERROR(CheckDirectory(*directory));
  InodeRecord& record = inode->record;
  if (record.IsDirectory())
    return Status(StatusCode::kNotPermitted, "a directory has one name only");
  const bool first_name = record.links == 0;
  if (first_name && !(inode->linkable && inode->open_count > 0))
    return Status(StatusCode::kNotFound, "the file was removed");
  if (record.links >= kMaxLinks)
    return Status(StatusCode::kTooManyLinks, "the file has too many names");
  SILTFS_ASSIGN_OR_RETURN(auto taken, FindName(new_parent, new_name));
  if (taken) return Status(StatusCode::kAlreadyExists, "the name is taken");

  Change change;
  ++record.links;
  record.ctime = directory->record.mtime = directory->record.ctime = Now();
  AddName(*directory, new_name, *inode, change);
  if (first_name) change.Delete(OrphanKey(number));
  Save(*inode, change);
  Save(*directory, change);
  lookups_.Add(number);
  const Attributes attributes = AttributesOf(*inode);
  Status applied = Apply(change);
  if (!applied.ok()) {
    lookups_.Remove(number, 1);
    return applied;
  }
  if (first_name) {
    inode->linkable = false;
    SetOrphan(number, false);
  }
  return attributes;
}

Status FileSystemImpl::DropLink(Inode& inode, int64_t now, Change& change) {
  InodeRecord& record = inode.record;
  record.links = record.IsDirectory() ? 0 : record.links - 1;
  record.ctime = now;
  if (record.links == 0) {
    // A concurrent release that sees no orphan mark leaves the deletion to the caller
    // (RemoveIfUnused).
    const bool used = inode.open_count > 0 || lookups_.Of(inode.number) > 0;
    SetOrphan(inode.number, used);
    if (!used) return DeleteInode(inode, change);
    change.Put(OrphanKey(inode.number), "");
  }
  Save(inode, change);
  return Status::Ok();
}

void FileSystemImpl::ForgetRemoved(Inode& inode) {
  if (inode.record.links > 0 || IsOrphan(inode.number)) return;
  inode.Invalidate();
  inodes_.Erase(inode.number);
}

Status FileSystemImpl::RemoveName(InodeNumber parent, std::string_view name, bool directory) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckName(name));
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr from = inodes_.Get(parent);
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(auto seen, FindName(parent, name));
    if (!seen) return NoSuchName(parent);
    InodePtr inode = inodes_.Get(seen->inode);
    {
      InodeLock lock({from, inode}, InodeLock::Mode::kExclusive);
      SILTFS_ASSIGN_OR_RETURN(auto entry, FindName(parent, name));
      if (!entry || entry->inode != inode->number) continue;  // it changed before it was locked
      SILTFS_RETURN_IF_ERROR(RemoveNameLocked(*from, name, *entry, *inode, directory));
    }
    RemoveIfUnused(inode->number);
    return Status::Ok();
  }
}

Status FileSystemImpl::RemoveNameLocked(Inode& from, std::string_view name, const NameEntry& entry,
                                        Inode& inode, bool directory) {
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(from));
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(inode));
  const bool is_directory = inode.record.IsDirectory();
  if (directory && !is_directory) return Status(StatusCode::kNotADirectory, "is not a directory");
  if (!directory && is_directory) return Status(StatusCode::kIsADirectory, "is a directory");
  if (is_directory && inode.record.entries > 0)
    return Status(StatusCode::kNotEmpty, "the directory is not empty");

  Change change;
  change.inodes = {&from, &inode};
  const int64_t now = Now();
  SILTFS_RETURN_IF_ERROR(DropLink(inode, now, change));
  DropName(from, name, entry, change);
  if (is_directory) --from.record.links;
  from.record.mtime = from.record.ctime = now;
  Save(from, change);
  SILTFS_RETURN_IF_ERROR(Apply(change));
  ForgetRemoved(inode);
  return Status::Ok();
}

Status FileSystemImpl::NoSuchName(InodeNumber directory) {
  SILTFS_RETURN_IF_ERROR(
      WithLoaded(directory, false, [this](const Inode& inode) { return CheckDirectory(inode); }));
  return Status(StatusCode::kNotFound, "there is no such name");
}

Status FileSystemImpl::Unlink(InodeNumber parent, std::string_view name) {
  return RemoveName(parent, name, false);
}

Status FileSystemImpl::RemoveDirectory(InodeNumber parent, std::string_view name) {
  return RemoveName(parent, name, true);
}

Result<std::string> FileSystemImpl::ReadLink(InodeNumber number) {
  std::string target;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&target](const Inode& inode) {
    if (!inode.record.IsSymlink())
      return Status(StatusCode::kInvalidArgument, "is not a symbolic link");
    target = inode.record.target;
    return Status::Ok();
  }));
  return target;
}

Status FileSystemImpl::ReadDirectory(InodeNumber number, uint64_t cookie,
                                     const std::function<bool(const DirectoryRecord&)>& visit) {
  constexpr uint32_t kType = kDirectoryType;
  InodeNumber parent = 0;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&parent](const Inode& inode) {
    if (!inode.record.IsDirectory())
      return Status(StatusCode::kNotADirectory, "is not a directory");
    parent = inode.record.parent;
    return Status::Ok();
  }));
  if (cookie < kDotCookie && !visit({".", number, kType, kDotCookie})) return Status::Ok();
  if (cookie < kDotDotCookie && !visit({"..", parent, kType, kDotDotCookie})) return Status::Ok();
  if (cookie == std::numeric_limits<uint64_t>::max()) return Status::Ok();
  const uint64_t first = std::max(cookie + 1, kFirstCookie);
  Status status;
  Status scanned = metadata_->Pin().Scan(
      DirectoryCookieKey(number, first), RangeOf(Table::kDirectoryCookie, number).end,
      [&](std::string_view key, std::string_view value) {
        auto parts = ParseNumberedKey(Table::kDirectoryCookie, key);
        auto entry = CookieEntry::Decode(value);
        if (!parts || !entry.ok()) {
          status = entry.ok()
                       ? Status(StatusCode::kCorruption, "metadata holds a malformed cookie key")
                       : std::move(entry).status();
          return false;
        }
        return visit({entry->name, entry->inode, entry->type, parts->number});
      });
  SILTFS_RETURN_IF_ERROR(scanned);
  return status;
}

}  // namespace siltfs
