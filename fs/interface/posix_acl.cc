#include "fs/interface/posix_acl.h"

#include <algorithm>

#include "store/base/coding.h"

namespace siltfs {
namespace {

using Tag = PosixAcl::Tag;
using Entry = PosixAcl::Entry;

constexpr uint32_t kVersion = 2;
constexpr uint32_t kAllPermissions = 7;

Status Wrong(const char* why) { return {StatusCode::kInvalidArgument, why}; }

bool IsNamed(Tag tag) { return tag == Tag::kUser || tag == Tag::kGroup; }

Status CheckEntry(const Entry& entry) {
  switch (entry.tag) {
    case Tag::kUserObj:
    case Tag::kUser:
    case Tag::kGroupObj:
    case Tag::kGroup:
    case Tag::kMask:
    case Tag::kOther:
      break;
    default:
      return Wrong("the access control list has an entry of an unknown kind");
  }
  if ((entry.permissions & ~kAllPermissions) != 0)
    return Wrong("the access control list has an unknown permission");
  if (IsNamed(entry.tag) && entry.id == PosixAcl::kNoId)
    return Wrong("a named entry of the access control list has no id");
  return Status::Ok();
}

// Tag numbers ascend in the order of the entries; only named tags repeat.
Status CheckOrder(const std::vector<Entry>& entries) {
  for (size_t i = 1; i < entries.size(); ++i) {
    const Tag before = entries[i - 1].tag;
    const Tag tag = entries[i].tag;
    if (tag < before || (tag == before && !IsNamed(tag)))
      return Wrong("the access control list has unordered or repeated entries");
  }
  return Status::Ok();
}

Status CheckWhole(const std::vector<Entry>& entries) {
  const auto has = [&entries](Tag tag) {
    return std::any_of(entries.begin(), entries.end(),
                       [tag](const Entry& entry) { return entry.tag == tag; });
  };
  if (!has(Tag::kUserObj) || !has(Tag::kGroupObj) || !has(Tag::kOther))
    return Wrong("the access control list has no entry for owner, group or others");
  if ((has(Tag::kUser) || has(Tag::kGroup)) && !has(Tag::kMask))
    return Wrong("the access control list has named entries but no mask");
  return Status::Ok();
}

}  // namespace

Result<PosixAcl> PosixAcl::Decode(std::string_view value) {
  if (value.size() > kMaxBytes) return Wrong("the access control list is longer than 4,096 bytes");
  Decoder in(AsBytes(value));
  if (in.U32() != kVersion) return Wrong("is not an access control list of version 2");
  std::vector<Entry> entries;
  while (in.ok() && in.remaining() > 0) {
    Entry entry;
    entry.tag = static_cast<Tag>(in.U16());
    entry.permissions = in.U16();
    entry.id = in.U32();
    if (!in.ok()) return Wrong("the access control list ends within an entry");
    SILTFS_RETURN_IF_ERROR(CheckEntry(entry));
    if (!IsNamed(entry.tag)) entry.id = kNoId;  // other ids have no meaning
    entries.push_back(entry);
  }
  SILTFS_RETURN_IF_ERROR(CheckOrder(entries));
  SILTFS_RETURN_IF_ERROR(CheckWhole(entries));
  return PosixAcl(std::move(entries));
}

std::string PosixAcl::Encode() const {
  Encoder out;
  out.U32(kVersion);
  for (const Entry& entry : entries_) {
    out.U16(static_cast<uint16_t>(entry.tag));
    out.U16(static_cast<uint16_t>(entry.permissions)).U32(entry.id);
  }
  return out.Take();
}

bool PosixAcl::HasMask() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.tag == Tag::kMask; });
}

uint32_t PosixAcl::PermissionsOf(Tag tag) const {
  return std::find_if(entries_.begin(), entries_.end(),
                      [tag](const Entry& entry) { return entry.tag == tag; })
      ->permissions;
}

PosixAcl::Entry& PosixAcl::Find(Tag tag) {
  return *std::find_if(entries_.begin(), entries_.end(),
                       [tag](const Entry& entry) { return entry.tag == tag; });
}

PosixAcl::Entry& PosixAcl::GroupClass() { return Find(HasMask() ? Tag::kMask : Tag::kGroupObj); }

uint32_t PosixAcl::PermissionBits() const {
  return PermissionsOf(Tag::kUserObj) << 6 |
         PermissionsOf(HasMask() ? Tag::kMask : Tag::kGroupObj) << 3 | PermissionsOf(Tag::kOther);
}

void PosixAcl::SetPermissionBits(uint32_t mode) {
  Find(Tag::kUserObj).permissions = mode >> 6 & kAllPermissions;
  GroupClass().permissions = mode >> 3 & kAllPermissions;
  Find(Tag::kOther).permissions = mode & kAllPermissions;
}

void PosixAcl::LimitTo(uint32_t mode) { SetPermissionBits(PermissionBits() & mode); }

}  // namespace siltfs
