// Owners and permission bits that a mount shows in the place of the stored ones (-o uid=, gid=,
// umask=), as libfuse's high-level interface and vfat do it.
//
// The kernel checks permissions by what it is shown. Changes are stored but not shown: a chown or a
// chmod succeeds if the shown owner may make it, and another mount without these options shows its
// effect. New inodes are stored with the real user, group and mode of their caller. Access control
// lists name users and groups of the stored files, so such a mount does not enforce them. A program
// must not run with the rights of a user or a group that its file only seems to have: set-user-ID
// is not shown with `uid`, nor set-group-ID of files with `gid`, nor either of them with `umask`.
//
// Thread-safety: as for a plain value. No errors, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "fs/interface/file_system.h"

namespace siltfs {

struct OwnerMapping {
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint32_t> umask;  // the permission bits that no inode has; at most 0777

  bool any() const { return uid || gid || umask; }
  // Changes the attributes of an inode to those that are shown.
  void ApplyTo(Attributes& attributes) const {
    constexpr uint32_t kAllPermissions = 0777;
    constexpr uint32_t kTypeMask = 0170000;
    constexpr uint32_t kDirectoryType = 0040000;
    constexpr uint32_t kSetUid = 04000;
    constexpr uint32_t kSetGid = 02000;
    if (uid) {
      attributes.uid = *uid;
      attributes.mode &= ~kSetUid;
    }
    if (gid) {
      attributes.gid = *gid;
      if ((attributes.mode & kTypeMask) != kDirectoryType) attributes.mode &= ~kSetGid;
    }
    if (umask) attributes.mode = (attributes.mode & kTypeMask) | (kAllPermissions & ~*umask);
  }

  bool operator==(const OwnerMapping&) const = default;
};

}  // namespace siltfs
