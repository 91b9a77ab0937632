// What the user on whose behalf a transfer runs may do. The kernel does not see a transfer, so the
// daemon checks the permissions as the kernel would.
//
// The superuser may do everything. For another user, permission bits and access control lists
// decide, and new inodes belong to that user.
//
// Thread-safety: every call from any thread. Ownership: borrows the FileSystem. Errors:
// kAccessDenied or kNotPermitted as the kernel would return, and those of FileSystem.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/entry_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/posix_acl.h"
#include "store/base/result.h"

namespace siltfs {

class CallerRights {
 public:
  // `groups`: all groups of the user; the first one owns new files unless the image or the
  // directory says otherwise.
  CallerRights(FileSystem& file_system, uint32_t uid, std::vector<uint32_t> groups)
      : file_system_(file_system), uid_(uid), groups_(std::move(groups)) {}

  bool superuser() const { return uid_ == 0; }
  Caller caller() const;

  // Whether the user may search `directory` and all directories above it.
  Status CheckReach(InodeNumber directory) const;
  Status CheckSearch(InodeNumber directory) const { return Check(directory, kExecute); }
  Status CheckList(InodeNumber directory) const { return Check(directory, kRead); }
  // Whether the user may make, replace and remove the name in the directory.
  Status CheckChange(InodeNumber directory, std::string_view name) const;
  // Whether the user may read the file of this name. OK if there is none.
  Status CheckRead(InodeNumber directory, std::string_view name) const;
  Status CheckRead(InodeNumber inode) const { return Check(inode, kRead); }
  Status CheckOwner(InodeNumber inode) const;
  // Whether the user may read a file with these attributes and this access control list; of a
  // directory, whether the user may list and search it.
  Result<bool> MayRead(const Attributes& attributes,
                       const std::optional<std::string>& access_list) const;

  // Whether the user may have a copy of an inode with the same owner, group and type.
  Status CheckClone(const ClonedInode& inode) const;
  // Whether the user may give a file an extended attribute of this name.
  Status CheckXattrName(std::string_view name) const;
  // Changes the image so that the user may make it: the owner is the user; the group stays if the
  // user is a member; set-id bits stay only for an owner and a group that stay. Extended attributes
  // that only the superuser may set are left out: they are removed from `xattrs`. kNotPermitted for
  // a device node. Does nothing for the superuser.
  Status Adapt(EntryImage& image, std::vector<XattrImage>& xattrs) const;

 private:
  static constexpr uint32_t kRead = 4;
  static constexpr uint32_t kWrite = 2;
  static constexpr uint32_t kExecute = 1;

  bool IsMember(uint32_t group) const;
  Status Check(InodeNumber inode, uint32_t wanted) const;
  // Whether the inode grants the user all of the wanted permissions. `find_list` returns its access
  // control list, if it has one.
  using FindList = std::function<Result<std::optional<std::string>>()>;
  Result<bool> Grants(const Attributes& attributes, uint32_t wanted,
                      const FindList& find_list) const;
  bool ListGrants(const PosixAcl& acl, const Attributes& attributes, uint32_t wanted) const;

  FileSystem& file_system_;
  const uint32_t uid_;
  const std::vector<uint32_t> groups_;
};

}  // namespace siltfs
