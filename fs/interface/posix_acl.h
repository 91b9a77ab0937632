// POSIX access control lists: the rights of named users and groups, besides owner, group and
// others, and the default lists that new entries of a directory inherit. From POSIX.1e draft 17,
// section 23, as in Linux (acl(5)). The kernel enforces the lists. This file decodes and checks
// them, and computes how lists, permission bits and default lists depend on each other.
//
// The encoded form is that of the extended attributes system.posix_acl_access and
// system.posix_acl_default: little-endian, a 32-bit version (2), then entries of tag (16 bits),
// permissions (16) and user or group id (32).
//
// A value type without synchronisation of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/result.h"

namespace siltfs {

inline constexpr std::string_view kAccessAclName = "system.posix_acl_access";
inline constexpr std::string_view kDefaultAclName = "system.posix_acl_default";

inline bool IsAclName(std::string_view name) {
  return name == kAccessAclName || name == kDefaultAclName;
}

class PosixAcl {
 public:
  enum class Tag : uint16_t {  // in the order of the entries
    kUserObj = 0x01,           // the owner
    kUser = 0x02,              // a named user
    kGroupObj = 0x04,          // the owning group
    kGroup = 0x08,             // a named group
    kMask = 0x10,              // the most that a named user or any group gets
    kOther = 0x20,
  };
  static constexpr uint32_t kNoId = 0xffffffff;

  struct Entry {
    Tag tag = Tag::kOther;
    uint32_t permissions = 0;  // read 4, write 2, execute 1
    uint32_t id = kNoId;       // of kUser and kGroup
    bool operator==(const Entry&) const = default;
  };

  // On machines with 4 KiB pages, the kernel reads at most this many bytes of a list. If a longer
  // list were stored, the kernel could not read it and would deny all access.
  static constexpr size_t kMaxBytes = 4096;

  // kInvalidArgument unless the kernel would accept the list: one entry each for owner, owning
  // group and others; named users after the owner; named groups after the owning group; a mask if
  // there are named entries. Ids may come in any order, and may occur more than once; the first
  // entry of an id counts.
  static Result<PosixAcl> Decode(std::string_view value);
  std::string Encode() const;

  // The permission bits (0777) of a file with this access list. The group's bits are those of the
  // mask if the list has one.
  uint32_t PermissionBits() const;
  // Whether the list grants the same rights as PermissionBits alone.
  bool IsEquivalentToMode() const { return entries_.size() == 3; }
  // Sets the file's permission bits to those of `mode` (chmod).
  void SetPermissionBits(uint32_t mode);
  // Turns a directory's default list into the access list of an entry made in it with `mode`. The
  // result grants only rights that both the list and `mode` grant.
  void LimitTo(uint32_t mode);

  const std::vector<Entry>& entries() const { return entries_; }
  bool operator==(const PosixAcl&) const = default;

 private:
  explicit PosixAcl(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  uint32_t PermissionsOf(Tag tag) const;
  Entry& Find(Tag tag);
  // The entry that the group's permission bits represent.
  Entry& GroupClass();
  bool HasMask() const;

  std::vector<Entry> entries_;  // always valid
};

}  // namespace siltfs
