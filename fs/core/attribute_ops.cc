// Attributes and extended attributes.
#include "fs/core/file_system_impl.h"
#include "fs/core/posix_acl.h"
#include "fs/meta/schema.h"

namespace siltfs {
namespace {

constexpr uint32_t kPermissionBits = 07777;
constexpr uint32_t kSetUserId = 04000;
constexpr uint32_t kSetGroupId = 02000;
constexpr uint32_t kGroupExecute = 00010;
constexpr std::string_view kCapability = "security.capability";

Status CheckXattrName(std::string_view name) {
  if (name.empty())
    return Status(StatusCode::kBufferTooSmall, "an extended attribute needs a name");
  if (name.size() > 255)
    return Status(StatusCode::kBufferTooSmall, "the attribute's name is longer than 255 bytes");
  return Status::Ok();
}

// Returns the mode without set-id bits. Set-group-id stays if the group may not execute: then it
// has no effect on execution.
uint32_t WithoutSetId(uint32_t mode) {
  mode &= ~kSetUserId;
  return (mode & kGroupExecute) != 0 ? mode & ~kSetGroupId : mode;
}

Status NoAttribute() { return Status(StatusCode::kNoAttribute, "has no such extended attribute"); }

}  // namespace

Result<Attributes> FileSystemImpl::GetAttributes(InodeNumber number) {
  Attributes attributes;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&attributes](const Inode& inode) {
    attributes = AttributesOf(inode);
    return Status::Ok();
  }));
  return attributes;
}

Result<Attributes> FileSystemImpl::SetAttributes(InodeNumber number,
                                                 const AttributeChange& wanted) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  const ChunkStore::Use use(*chunks_);
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  Attributes attributes;
  {
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    SILTFS_ASSIGN_OR_RETURN(attributes, ChangeAttributes(*inode, wanted));
  }
  if (!wanted.size || inode->open_count > 0) return attributes;
  // The file is not open, so no release will fold it.
  FoldAndLog(number);
  auto folded = GetAttributes(number);
  return folded.ok() ? std::move(folded).value() : attributes;
}

Result<Attributes> FileSystemImpl::ChangeAttributes(Inode& inode, const AttributeChange& wanted) {
  Change change;
  // If only the record of a dirty file changes, the change is deferred with the content.
  const bool keeps_back = inode.deferred && !wanted.size && inode.record.xattrs == 0;
  if (keeps_back) {
    SILTFS_RETURN_IF_ERROR(Join(inode, change));
  } else {
    SILTFS_RETURN_IF_ERROR(wanted.size ? LoadContentAndFlush(inode) : LoadAndFlush(inode));
  }
  InodeRecord& record = inode.record;
  const int64_t now = Now();
  const ContentTally before(record);
  if (wanted.size) {
    if (record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
    if (!record.IsRegular()) return Status(StatusCode::kInvalidArgument, "is not a regular file");
    SILTFS_RETURN_IF_ERROR(content_.Truncate(record, inode.overlay, *wanted.size));
    record.mtime = now;
    inode.last_write = env_.MonotonicNanoseconds();
  }
  if (wanted.mode) {
    record.mode = (record.mode & ~kPermissionBits) | (*wanted.mode & kPermissionBits);
    SILTFS_RETURN_IF_ERROR(AdaptAcl(inode, record.mode, change));
  }
  if (wanted.uid) record.uid = *wanted.uid;
  if (wanted.gid) record.gid = *wanted.gid;
  if (wanted.kill_privileges || wanted.size || wanted.uid || wanted.gid) {
    SILTFS_RETURN_IF_ERROR(DropPrivileges(
        inode, wanted.kill_privileges ? Privileges::kDropAll : Privileges::kDropCapability,
        change));
  }
  if (wanted.atime) record.atime = *wanted.atime;
  if (wanted.mtime) record.mtime = *wanted.mtime;
  record.ctime = wanted.ctime.value_or(now);
  if (wanted.mtime && wanted.ctime) inode.times_replied = inode.open_count > 0;
  if (keeps_back) {
    Defer(inode, before, change);
    return AttributesOf(inode);
  }
  if (wanted.size) {
    SaveContent(inode, before, change);
  } else {
    Save(inode, change);
  }
  const Attributes attributes = AttributesOf(inode);
  SILTFS_RETURN_IF_ERROR(Apply(change));
  return attributes;
}

Status FileSystemImpl::DropPrivileges(Inode& inode, Privileges privileges, Change& change) const {
  InodeRecord& record = inode.record;
  if (privileges == Privileges::kKeep || record.IsDirectory()) return Status::Ok();
  change.inodes.push_back(&inode);
  if (privileges == Privileges::kDropAll) record.mode = WithoutSetId(record.mode);
  if (record.xattrs == 0 || inode.no_capability) return Status::Ok();
  const std::string key = XattrKey(inode.number, kCapability);
  SILTFS_ASSIGN_OR_RETURN(auto present, metadata_->Get(key));
  if (present) {
    change.Delete(key);
    --record.xattrs;
  }
  inode.no_capability = true;
  return Status::Ok();
}

Result<std::string> FileSystemImpl::GetXattr(InodeNumber number, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  std::string found;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&](const Inode& inode) -> Status {
    if (inode.record.xattrs == 0) return NoAttribute();
    SILTFS_ASSIGN_OR_RETURN(auto value, metadata_->Get(XattrKey(number, name)));
    if (!value) return NoAttribute();
    found = std::move(*value);
    return Status::Ok();
  }));
  return found;
}

Status FileSystemImpl::SetXattr(InodeNumber number, std::string_view name, std::string_view value,
                                XattrMode mode) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckRoom(kBytesPerName));
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  if (value.size() > kMaxXattrValueBytes) {
    return Status(StatusCode::kBufferTooSmall, "the attribute's value is longer than 65,536 bytes");
  }
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(*inode));
  SILTFS_ASSIGN_OR_RETURN(auto present, metadata_->Get(XattrKey(number, name)));
  if (present && mode == XattrMode::kCreate)
    return Status(StatusCode::kAlreadyExists, "the attribute is there");
  if (!present && mode == XattrMode::kReplace) return NoAttribute();
  if (IsAclName(name)) return SetAcl(*inode, name, value, present.has_value(), mode);
  if (!present) SILTFS_RETURN_IF_ERROR(CheckXattrList(*inode, name));
  Change change;
  change.Put(XattrKey(number, name), std::string(value));
  if (!present) ++inode->record.xattrs;
  if (name == kCapability) inode->no_capability = false;
  inode->record.ctime = Now();
  Save(*inode, change);
  return Apply(change);
}

Status FileSystemImpl::CheckXattrList(const Inode& inode, std::string_view new_name) const {
  constexpr size_t kMostOfOne = 255 + 1;
  if (inode.record.xattrs < kMaxXattrListBytes / kMostOfOne) return Status::Ok();
  size_t bytes = new_name.size() + 1;
  const KeyRange range = RangeOf(Table::kXattr, inode.number);
  SILTFS_RETURN_IF_ERROR(metadata_->Pin().Scan(range.begin, range.end,
                                               [&bytes](std::string_view key, std::string_view) {
                                                 if (auto name = ParseXattrName(key))
                                                   bytes += name->size() + 1;
                                                 return true;
                                               }));
  if (bytes <= kMaxXattrListBytes) return Status::Ok();
  return Status(StatusCode::kNoSpace, "the attributes' names would not fit a listing");
}

Result<std::vector<std::string>> FileSystemImpl::ListXattrs(InodeNumber number) {
  std::vector<std::string> names;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&](const Inode& inode) -> Status {
    if (inode.record.xattrs == 0) return Status::Ok();
    const KeyRange range = RangeOf(Table::kXattr, number);
    return metadata_->Pin().Scan(range.begin, range.end,
                                 [&names](std::string_view key, std::string_view) {
                                   if (auto name = ParseXattrName(key)) names.emplace_back(*name);
                                   return true;
                                 });
  }));
  return names;
}

Status FileSystemImpl::RemoveXattr(InodeNumber number, std::string_view name) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  SILTFS_RETURN_IF_ERROR(CheckXattrName(name));
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(*inode));
  SILTFS_ASSIGN_OR_RETURN(auto present, metadata_->Get(XattrKey(number, name)));
  // A redundant list is not stored, so its absence is no error.
  if (!present) return IsAclName(name) ? Status::Ok() : NoAttribute();
  if (name == kDefaultAclName) inode->default_acl.reset();
  Change change;
  change.Delete(XattrKey(number, name));
  --inode->record.xattrs;
  inode->record.ctime = Now();
  Save(*inode, change);
  return Apply(change);
}

}  // namespace siltfs
