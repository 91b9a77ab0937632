// Owners and permission bits that a mount shows in the place of the stored ones (-o uid=, gid=,
// umask=), as libfuse's high-level interface and vfat do it.
//
// The kernel checks permissions by what it is shown. Changes are stored but not shown: a chown or a
// chmod succeeds if the shown owner may make it, and another mount without these options shows its
// effect. New inodes are stored with the real user, group and mode of their caller. Access control
// lists name users and groups of the stored files, so such a mount does not enforce them. A program
// must not run with the rights of a user or a group that its file only seems to have: set-user-ID
// is not shown with `uid`, nor set-group-ID of files with `gid`, nor either of them with `umask`.
// Nor can a user other than the superuser store these bits for an owner or a group that is
// replaced: the shown owner of the superuser's files could make programs of them that run as the
// superuser in another mount. For the same reason, bits that are not shown are removed when another
// user than the superuser opens the file for writing.
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
    if (uid) {
      attributes.uid = *uid;
    }
    if (gid) attributes.gid = *gid;
    attributes.mode = WithoutReplacedIds(attributes.mode);
    if (umask) attributes.mode = (attributes.mode & kTypeMask) | (kAllPermissions & ~*umask);
  }

  // What a chmod by this user stores. `mode` has the type, too.
  uint32_t ModeToStore(uint32_t mode, uint32_t user) const {
    return user == 0 ? mode : WithoutReplacedIds(mode);
  }
  // The mode of a new file of this user, no directory. It may get the group of its directory. With
  // `umask`, the kernel is not shown that, and does not check whether the user is in the group.
  uint32_t ModeOfNewFile(uint32_t mode, uint32_t user) const {
    return user != 0 && umask ? ModeToStore(mode, user) & ~kSetGid : ModeToStore(mode, user);
  }

  bool operator==(const OwnerMapping&) const = default;

 private:
  static constexpr uint32_t kTypeMask = 0170000;
  static constexpr uint32_t kDirectoryType = 0040000;
  static constexpr uint32_t kSetUid = 04000;
  static constexpr uint32_t kSetGid = 02000;

  // A directory's set-group-ID bit gives no rights.
  uint32_t WithoutReplacedIds(uint32_t mode) const {
    if (uid) mode &= ~kSetUid;
    if (gid && (mode & kTypeMask) != kDirectoryType) mode &= ~kSetGid;
    return mode;
  }
};

}  // namespace siltfs
