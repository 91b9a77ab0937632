#include "fs/ops/entry_images.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "fs/interface/posix_acl.h"
#include "fs/ops/directory_names.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kAccessBits = 0777;
constexpr uint32_t kModeBits = 07777;
constexpr uint32_t kFifo = 0010000;
constexpr uint32_t kCharacterDevice = 0020000;
constexpr uint32_t kDirectory = 0040000;
constexpr uint32_t kBlockDevice = 0060000;
constexpr uint32_t kRegular = 0100000;
constexpr uint32_t kSymlink = 0120000;
constexpr uint32_t kSocket = 0140000;
constexpr uint32_t kNoOwner = 0xffffffff;
constexpr size_t kMaxTargetBytes = 4095;
constexpr std::array<std::string_view, 3> kNamespaces = {"user.", "trusted.", "security."};

Status Invalid(const char* why) { return {StatusCode::kInvalidArgument, why}; }

Status CheckType(const EntryImage& image, bool directory) {
  switch (image.mode & kTypeMask) {
    case kDirectory:
      return directory ? Status::Ok() : Status(StatusCode::kIsADirectory, "is a directory");
    case kRegular:
    case kSymlink:
    case kFifo:
    case kSocket:
    case kCharacterDevice:
    case kBlockDevice:
      return directory ? Status(StatusCode::kNotADirectory, "is not a directory") : Status::Ok();
    default:
      return Invalid("has no known type");
  }
}

bool IsXattrName(std::string_view name) {
  if (IsAclName(name)) return true;
  return std::any_of(kNamespaces.begin(), kNamespaces.end(), [name](std::string_view space) {
    return name.size() > space.size() && name.starts_with(space);
  });
}

Status CheckXattrs(const EntryImage& image) {
  size_t list_bytes = 0;
  std::vector<std::string_view> names;
  for (const XattrImage& xattr : image.xattrs) {
    if (!IsXattrName(xattr.name) || xattr.name.find('\0') != xattr.name.npos) {
      return Status(
          StatusCode::kUnsupported,
          "has an extended attribute in an unknown namespace: " + std::string(xattr.name));
    }
    if (xattr.name.size() > 255 || xattr.value.size() > kMaxXattrValueBytes)
      return Invalid("has an extended attribute that is too large");
    list_bytes += xattr.name.size() + 1;
    names.push_back(xattr.name);
  }
  if (list_bytes > kMaxXattrListBytes)
    return Status(StatusCode::kNoSpace, "the list of attribute names would be too long");
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end())
    return Invalid("has an extended attribute twice");
  return Status::Ok();
}

// What is stored of an extended attribute; nullopt if nothing is stored. An access list sets the
// permission bits of the record.
Result<std::optional<std::string>> ValueToStore(const XattrImage& xattr, InodeRecord& record) {
  if (!IsAclName(xattr.name)) return std::optional<std::string>(xattr.value);
  SILTFS_ASSIGN_OR_RETURN(const PosixAcl acl, PosixAcl::Decode(xattr.value));
  if (xattr.name == kDefaultAclName) {
    if (!record.IsDirectory())
      return Status(StatusCode::kAccessDenied,
                    "only a directory has a default access control list");
    return std::optional<std::string>(acl.Encode());
  }
  if (record.IsSymlink())
    return Status(StatusCode::kUnsupported, "a symbolic link has no access control list");
  record.mode = (record.mode & ~kAccessBits) | acl.PermissionBits();
  if (acl.IsEquivalentToMode()) return std::optional<std::string>();
  return std::optional<std::string>(acl.Encode());
}

using StoredXattrs = std::map<std::string, std::string, std::less<>>;

// The inode's extended attributes, except for hidden ones.
Result<StoredXattrs> ReadXattrs(const MetadataStore& metadata, const Inode& inode) {
  StoredXattrs found;
  if (inode.record.xattrs == 0) return found;
  const KeyRange range = RangeOf(Table::kXattr, inode.number);
  SILTFS_RETURN_IF_ERROR(metadata.Pin().Scan(
      range.begin, range.end, [&found](std::string_view key, std::string_view value) {
        const auto name = ParseXattrName(key);
        if (name && !IsHiddenXattr(*name)) found.emplace(*name, value);
        return true;
      }));
  return found;
}

}  // namespace

Status CheckEntryImage(const EntryImage& image, bool directory) {
  SILTFS_RETURN_IF_ERROR(CheckType(image, directory));
  if (!directory) SILTFS_RETURN_IF_ERROR(DirectoryNames::CheckName(image.name));
  if (image.uid == kNoOwner || image.gid == kNoOwner) return Invalid("has no owner");
  if ((image.mode & kTypeMask) == kSymlink) {
    if (image.target.empty() || image.target.find('\0') != image.target.npos)
      return Invalid("the link's target is empty or has a zero byte");
    if (image.target.size() > kMaxTargetBytes)
      return Status(StatusCode::kNameTooLong, "the link's target is longer than 4,095 bytes");
  }
  return CheckXattrs(image);
}

InodeRecord RecordOf(const EntryImage& image, int64_t now) {
  InodeRecord record;
  record.mode = image.mode;
  SetAttributesOf(record, image);
  record.links = 1;
  const uint32_t type = record.type();
  if (type == kCharacterDevice || type == kBlockDevice) record.device = image.device;
  if (type == kSymlink) record.target = image.target;
  record.parent = image.parent;
  record.ctime = record.btime = now;
  return record;
}

void SetAttributesOf(InodeRecord& record, const EntryImage& image) {
  record.mode = record.type() | (record.IsSymlink() ? kAccessBits : image.mode & kModeBits);
  record.uid = image.uid;
  record.gid = image.gid;
  record.atime = image.atime;
  record.mtime = image.mtime;
}

bool HasAttributesOf(const InodeRecord& record, const EntryImage& image) {
  const InodeRecord wanted = RecordOf(image, 0);
  return record.mode == wanted.mode && record.uid == wanted.uid && record.gid == wanted.gid &&
         record.mtime == wanted.mtime && record.device == wanted.device &&
         record.target == wanted.target;
}

Result<bool> HasXattrsOf(const MetadataStore& metadata, const EntryImage& image,
                         const Inode& inode) {
  SILTFS_ASSIGN_OR_RETURN(StoredXattrs left, ReadXattrs(metadata, inode));
  InodeRecord scratch;  // an access list would change its mode
  scratch.mode = inode.record.mode;
  for (const XattrImage& xattr : image.xattrs) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, ValueToStore(xattr, scratch));
    if (!value) continue;
    const auto found = left.find(xattr.name);
    if (found == left.end() || found->second != *value) return false;
    left.erase(found);
  }
  return left.empty();
}

Status AddXattrs(const EntryImage& image, Inode& inode, Change& change) {
  for (const XattrImage& xattr : image.xattrs) {
    SILTFS_ASSIGN_OR_RETURN(auto value, ValueToStore(xattr, inode.record));
    if (!value) continue;
    change.Put(XattrKey(inode.number, xattr.name), *std::move(value));
    ++inode.record.xattrs;
  }
  return Status::Ok();
}

Result<bool> ReplaceXattrs(const MetadataStore& metadata, const EntryImage& image, Inode& inode,
                           Change& change) {
  SILTFS_ASSIGN_OR_RETURN(StoredXattrs old, ReadXattrs(metadata, inode));
  bool changed = false;
  for (const XattrImage& xattr : image.xattrs) {
    SILTFS_ASSIGN_OR_RETURN(auto value, ValueToStore(xattr, inode.record));
    if (!value) continue;
    const auto found = old.find(xattr.name);
    const bool present = found != old.end();
    const bool same = present && found->second == *value;
    if (present) old.erase(found);
    if (same) continue;
    change.Put(XattrKey(inode.number, xattr.name), *std::move(value));
    if (!present) ++inode.record.xattrs;
    changed = true;
  }
  for (const auto& [name, value] : old) {
    change.Delete(XattrKey(inode.number, name));
    --inode.record.xattrs;
    changed = true;
  }
  return changed;
}

Status CopyXattrs(const MetadataStore& metadata, const Inode& from, uint32_t hidden, Inode& inode,
                  Change& change) {
  if (from.record.xattrs <= hidden) return Status::Ok();
  const KeyRange range = RangeOf(Table::kXattr, from.number);
  return metadata.Pin().Scan(range.begin, range.end,
                             [&](std::string_view key, std::string_view value) {
                               const auto name = ParseXattrName(key);
                               if (!name || IsHiddenXattr(*name)) return true;
                               change.Put(XattrKey(inode.number, *name), std::string(value));
                               ++inode.record.xattrs;
                               return true;
                             });
}

void PutSourceRecord(const EntryImage& image, bool present, Inode& inode, Change& change) {
  if (!image.source || !inode.record.IsRegular()) return;
  SourceRecord kept{.inode = image.source->inode,
                    .ctime = image.source->ctime,
                    .size = image.source->size,
                    .mtime = image.source->mtime};
  kept.DescribeFile(inode.record);
  change.Put(XattrKey(inode.number, kSourceXattr), kept.Encode());
  if (!present) ++inode.record.xattrs;
}

Result<std::optional<SourceRecord>> FindSourceRecord(const MetadataStore& metadata,
                                                     const Inode& inode) {
  if (inode.record.xattrs == 0) return std::optional<SourceRecord>();
  SILTFS_ASSIGN_OR_RETURN(auto value, metadata.Get(XattrKey(inode.number, kSourceXattr)));
  if (!value) return std::optional<SourceRecord>();
  SILTFS_ASSIGN_OR_RETURN(const SourceRecord found, SourceRecord::Decode(*value));
  return std::optional<SourceRecord>(found);
}

}  // namespace siltfs
