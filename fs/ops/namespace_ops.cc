#include "fs/ops/namespace_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "fs/ops/quota_moves.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kDirectoryType = 0040000;
constexpr uint32_t kRegularType = 0100000;
constexpr uint32_t kSymlinkType = 0120000;
constexpr uint32_t kSetGidBit = 02000;

}  // namespace

Result<Attributes> NamespaceOps::Lookup(InodeNumber parent, std::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Status(StatusCode::kNameTooLong, "the name is longer than 255 bytes");
  if (name == ".") return LookupSelf(parent);
  if (name == "..") return LookupParent(parent);
  InodeNumber child = 0;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(parent, false, [&](const Inode& directory) -> Status {
    if (!directory.record.IsDirectory())
      return Status(StatusCode::kNotADirectory, "is not a directory");
    SILTFS_ASSIGN_OR_RETURN(auto entry, names_.FindName(directory, name));
    if (!entry) return Status(StatusCode::kNotFound, "there is no such name");
    child = entry->inode;
    // While the directory is locked, the name cannot be removed, so the inode still exists.
    lifetimes_.lookups().Add(child);
    return Status::Ok();
  }));
  auto attributes = inodes_.GetAttributes(child);
  if (!attributes.ok()) Forget(child, 1);
  return attributes;
}

Result<Attributes> NamespaceOps::LookupSelf(InodeNumber number) {
  Attributes attributes;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&](const Inode& inode) {
    if (inode.record.links == 0)
      return Status(StatusCode::kStale, fmt::format("inode {} was removed", number));
    attributes = AttributesOf(inode);
    lifetimes_.lookups().Add(number);  // the inode is locked, so it still exists
    return Status::Ok();
  }));
  return attributes;
}

Result<Attributes> NamespaceOps::LookupParent(InodeNumber directory) {
  InodeNumber parent = 0;
  Status found = inodes_.WithLoaded(directory, false, [&](const Inode& inode) -> Status {
    SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(inode));
    parent = inode.record.parent;
    // While this directory is locked, it cannot be moved or removed. So its parent is not empty,
    // and cannot be removed, either.
    lifetimes_.lookups().Add(parent);
    return Status::Ok();
  });
  SILTFS_RETURN_IF_ERROR(found);
  auto attributes = inodes_.GetAttributes(parent);
  if (!attributes.ok()) Forget(parent, 1);
  return attributes;
}

void NamespaceOps::Forget(InodeNumber inode, uint64_t lookups) {
  if (lifetimes_.lookups().Remove(inode, lookups) == 0) lifetimes_.RemoveIfUnused(inode);
}

Result<Attributes> NamespaceOps::MakeInode(InodeNumber parent, std::string_view name,
                                           const NewInode& wanted) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  if (!wanted.temporary) SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(name));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr directory = inodes_.Get(parent);
  InodeLock lock(directory, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*directory));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(*directory));
  if (!wanted.temporary) {
    SILTFS_ASSIGN_OR_RETURN(auto taken, names_.FindName(*directory, name));
    if (taken) return Status(StatusCode::kAlreadyExists, "the name is taken");
  }
  std::shared_ptr<const PosixAcl> inherited;
  if (wanted.caller.acls) {
    SILTFS_ASSIGN_OR_RETURN(inherited, acls_.DefaultAclOf(*directory));
  }
  const QuotaNumber quota = store_.quotas().Existing(directory->record.quota);
  SILTFS_ASSIGN_OR_RETURN(const auto room, store_.quotas().Reserve(quota, kOneFile));
  SILTFS_ASSIGN_OR_RETURN(InodeNumber number, ids_->NextInode());

  const int64_t now = store_.Now();
  // The new inode's number is higher than that of its directory. So locking it after its directory
  // keeps the lock order.
  InodePtr inode = inodes_.Get(number);
  InodeLock inode_lock(inode, InodeLock::Mode::kExclusive);
  InodeRecord& record = inode->record;
  record.mode = wanted.mode;
  record.links = wanted.temporary ? 0 : 1;
  record.uid = wanted.caller.uid;
  record.gid = wanted.caller.gid;
  record.device = wanted.device;
  record.parent = wanted.temporary ? 0 : parent;
  record.target = wanted.target;
  record.quota = quota;
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
    record.next_cookie = kFirstCookie;
    ++directory->record.links;
  }
  inodes_.SetLoaded(*inode);
  if (wanted.open) inode->open_count = 1;
  if (!record.IsSymlink()) AclOps::SetFirstMode(*inode, inherited, wanted.caller.umask, change);

  change.Save(*inode);
  if (wanted.temporary) {
    inode->linkable = true;
    lifetimes_.AddOrphan(*inode, change);
  } else {
    DirectoryNames::AddName(*directory, name, *inode, change);
    directory->record.mtime = directory->record.ctime = now;
    change.Save(*directory);
  }
  change.Count(is_directory ? Counter::kDirectories : Counter::kFiles, 1);
  change.CountUsage(record, kOneFile);
  lifetimes_.lookups().Add(number);
  const Attributes attributes = AttributesOf(*inode);
  Status applied = changes_.Apply(change);
  if (!applied.ok()) {
    lifetimes_.lookups().Remove(number, 1);
    inode->open_count = 0;
    lifetimes_.NoLongerOrphan(number);
    inodes_.Erase(number);
    return applied;
  }
  return attributes;
}

Result<Attributes> NamespaceOps::MakeNode(InodeNumber parent, std::string_view name, uint32_t mode,
                                          uint64_t device, Caller caller) {
  if ((mode & kTypeMask) == 0) mode |= kRegularType;
  if ((mode & kTypeMask) == kDirectoryType || (mode & kTypeMask) == kSymlinkType) {
    return Status(StatusCode::kInvalidArgument, "mknod makes no directories or symbolic links");
  }
  return MakeInode(parent, name,
                   {.mode = mode,
                    .device = device,
                    .caller = caller,
                    .target = {},
                    .open = false,
                    .temporary = false});
}

Result<Attributes> NamespaceOps::MakeDirectory(InodeNumber parent, std::string_view name,
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

Result<Attributes> NamespaceOps::MakeSymlink(InodeNumber parent, std::string_view name,
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

Result<Attributes> NamespaceOps::CreateFile(InodeNumber parent, std::string_view name,
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

Result<Attributes> NamespaceOps::MakeTemporaryFile(InodeNumber directory, uint32_t mode,
                                                   Caller caller) {
  mode = (mode & ~kTypeMask) | kRegularType;
  return MakeInode(
      directory, {},
      {.mode = mode, .device = 0, .caller = caller, .target = {}, .open = true, .temporary = true});
}

Result<Attributes> NamespaceOps::Link(InodeNumber number, InodeNumber new_parent,
                                      std::string_view new_name) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.CheckRoom(kBytesPerName));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(new_name));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodePtr directory = inodes_.Get(new_parent);
  InodeLock lock({inode, directory}, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*inode));
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(*directory));
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckDirectory(*directory));
  InodeRecord& record = inode->record;
  if (record.IsDirectory())
    return Status(StatusCode::kNotPermitted, "a directory has one name only");
  const bool first_name = record.links == 0;
  if (first_name && !(inode->linkable && inode->open_count > 0))
    return Status(StatusCode::kNotFound, "the file was removed");
  if (record.links >= kMaxLinks)
    return Status(StatusCode::kTooManyLinks, "the file has too many names");
  SILTFS_ASSIGN_OR_RETURN(auto taken, names_.FindName(*directory, new_name));
  if (taken) return Status(StatusCode::kAlreadyExists, "the name is taken");
  SILTFS_RETURN_IF_ERROR(CheckLinkQuota(store_, names_, *inode, *directory));

  Change change;
  CountMoved(store_, *directory, *inode, change);
  ++record.links;
  record.ctime = directory->record.mtime = directory->record.ctime = store_.Now();
  DirectoryNames::AddName(*directory, new_name, *inode, change);
  if (first_name) InodeLifetimes::RemoveOrphanKey(*inode, change);
  change.Save(*inode);
  change.Save(*directory);
  lifetimes_.lookups().Add(number);
  const Attributes attributes = AttributesOf(*inode);
  Status applied = changes_.Apply(change);
  if (!applied.ok()) {
    lifetimes_.lookups().Remove(number, 1);
    return applied;
  }
  if (first_name) {
    inode->linkable = false;
    lifetimes_.NoLongerOrphan(number);
  }
  return attributes;
}

Status NamespaceOps::RemoveName(InodeNumber parent, std::string_view name, bool directory) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(name));
  SILTFS_RETURN_IF_ERROR(store_.metadata().WaitForRoom());
  InodePtr from = inodes_.Get(parent);
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(auto seen, names_.FindName(parent, name));
    if (!seen) return names_.NoSuchName(parent);
    InodePtr inode = inodes_.Get(seen->inode);
    {
      InodeLock lock({from, inode}, InodeLock::Mode::kExclusive);
      SILTFS_ASSIGN_OR_RETURN(auto entry, names_.FindName(parent, name));
      if (!entry || entry->inode != inode->number) continue;  // changed before the locks were taken
      SILTFS_RETURN_IF_ERROR(RemoveNameLocked(*from, name, *entry, *inode, directory));
    }
    lifetimes_.RemoveIfUnused(inode->number);
    return Status::Ok();
  }
}

Status NamespaceOps::RemoveNameLocked(Inode& from, std::string_view name, const NameEntry& entry,
                                      Inode& inode, bool directory) {
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(from));
  SILTFS_RETURN_IF_ERROR(inodes_.LoadAndFlush(inode));
  const bool is_directory = inode.record.IsDirectory();
  if (directory && !is_directory) return Status(StatusCode::kNotADirectory, "is not a directory");
  if (!directory && is_directory) return Status(StatusCode::kIsADirectory, "is a directory");
  if (is_directory && inode.record.entries > 0)
    return Status(StatusCode::kNotEmpty, "the directory is not empty");

  Change change;
  change.Include({&from, &inode});
  const int64_t now = store_.Now();
  SILTFS_RETURN_IF_ERROR(lifetimes_.DropLink(inode, now, change));
  DirectoryNames::DropName(from, name, entry, change);
  if (is_directory) --from.record.links;
  from.record.mtime = from.record.ctime = now;
  change.Save(from);
  SILTFS_RETURN_IF_ERROR(changes_.Apply(change));
  lifetimes_.ForgetRemoved(inode);
  return Status::Ok();
}

Status NamespaceOps::Unlink(InodeNumber parent, std::string_view name) {
  return RemoveName(parent, name, false);
}

Status NamespaceOps::RemoveDirectory(InodeNumber parent, std::string_view name) {
  return RemoveName(parent, name, true);
}

Result<std::string> NamespaceOps::ReadLink(InodeNumber number) {
  std::string target;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&target](const Inode& inode) {
    if (!inode.record.IsSymlink())
      return Status(StatusCode::kInvalidArgument, "is not a symbolic link");
    target = inode.record.target;
    return Status::Ok();
  }));
  return target;
}

Status NamespaceOps::ReadDirectory(InodeNumber number, uint64_t cookie,
                                   const std::function<bool(const DirectoryRecord&)>& visit) {
  constexpr uint32_t kType = kDirectoryType;
  InodeNumber parent = 0;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(number, false, [&parent](const Inode& inode) {
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
  Status scanned = store_.metadata().Pin().Scan(
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
