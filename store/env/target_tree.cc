#include "store/env/target_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "store/env/posix_tree.h"

namespace siltfs {
namespace {

timespec ToTime(int64_t nanoseconds) {
  int64_t seconds = nanoseconds / 1'000'000'000;
  int64_t rest = nanoseconds % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  return {static_cast<time_t>(seconds), rest};
}

// Gives a file without a name this name. Linking by an empty path needs privileges, so the link
// goes through the path of the descriptor. Returns -1 with an errno if it cannot.
int LinkUnnamed(const Descriptor& file, const Descriptor& directory, const std::string& name) {
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  return linkat(AT_FDCWD, path.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW);
}

// A new file without a name; invalid if the file system, or a missing /proc, does not allow it.
Descriptor NewUnnamed(const Descriptor& directory) {
  static const bool linkable = access("/proc/self/fd", X_OK) == 0;
  if (!linkable) return Descriptor();
  return Descriptor(openat(directory.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

bool IsSuperuser() { return geteuid() == 0; }

// An attribute that this user may not set is left out.
bool MaySet(const std::string& name) {
  return IsSuperuser() || name.starts_with("user.") || name.starts_with("system.");
}

// Other attributes of a new file are labels that the system has put there, such as
// security.selinux, and stay.
bool MayRemove(const std::string& name) {
  // XFS shows its own form of access lists under these names, too.
  if (name.starts_with("trusted.SGI_ACL_")) return false;
  return name.starts_with("user.") || name.starts_with("trusted.") ||
         name == "security.capability" || name == "system.posix_acl_access" ||
         name == "system.posix_acl_default";
}

// Sets the attributes of the list through `set`, and removes others through `remove`. `present` are
// the names that are there now.
Status SetXattrs(const std::vector<SourceXattr>& xattrs, const std::set<std::string>& present,
                 const std::function<int(const SourceXattr&)>& set,
                 const std::function<int(const char*)>& remove, const std::string& name) {
  std::set<std::string> others = present;
  for (const SourceXattr& xattr : xattrs) {
    others.erase(xattr.name);
    if (MaySet(xattr.name) && set(xattr) != 0)
      return TreeError("set the extended attribute " + xattr.name, name);
  }
  for (const std::string& other : others) {
    if (MaySet(other) && MayRemove(other) && remove(other.c_str()) != 0 && errno != ENODATA &&
        errno != ENOTSUP)
      return TreeError("remove the extended attribute " + other, name);
  }
  return Status::Ok();
}

std::set<std::string> NamesIn(const std::string& list) {
  std::set<std::string> names;
  for (size_t at = 0; at < list.size();) {
    const std::string name = list.c_str() + at;
    at += name.size() + 1;
    names.insert(name);
  }
  return names;
}

Status SetXattrsOf(const Descriptor& fd, const std::vector<SourceXattr>& xattrs,
                   const std::string& name) {
  std::string list(65536, '\0');
  const ssize_t size = flistxattr(fd.get(), list.data(), list.size());
  list.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return SetXattrs(
      xattrs, NamesIn(list),
      [&](const SourceXattr& xattr) {
        return fsetxattr(fd.get(), xattr.name.c_str(), xattr.value.data(), xattr.value.size(), 0);
      },
      [&](const char* other) { return fremovexattr(fd.get(), other); }, name);
}

// Sets owner, extended attributes, mode and times, in this order: a new owner removes set-id bits
// and capabilities, and an access list changes the mode.
Status SetAttributesOf(const Descriptor& fd, const SourceAttributes& attributes,
                       const std::vector<SourceXattr>& xattrs, const std::string& name) {
  uint32_t mode = attributes.mode & 07777;
  struct stat now = {};
  if (fstat(fd.get(), &now) != 0) return TreeError("read the attributes", name);
  const bool owner_differs = now.st_uid != attributes.uid || now.st_gid != attributes.gid;
  if (owner_differs && fchown(fd.get(), attributes.uid, attributes.gid) != 0) {
    if (errno != EPERM || IsSuperuser()) return TreeError("set the owner", name);
    mode &= ~static_cast<uint32_t>(S_ISUID | S_ISGID);
    if (now.st_gid != attributes.gid &&
        fchown(fd.get(), static_cast<uid_t>(-1), attributes.gid) != 0)
      errno = 0;  // the group stays that of this user
  }
  SILTFS_RETURN_IF_ERROR(SetXattrsOf(fd, xattrs, name));
  if ((now.st_mode & 07777) != mode || owner_differs || !xattrs.empty()) {
    if (fchmod(fd.get(), mode) != 0) return TreeError("set the mode", name);
  }
  const timespec times[2] = {ToTime(attributes.atime), ToTime(attributes.mtime)};
  if (futimens(fd.get(), times) != 0) return TreeError("set the times", name);
  return Status::Ok();
}

}  // namespace

TargetFile::TargetFile(std::shared_ptr<const TargetDirectory> directory, std::string name,
                       std::string staged, Descriptor fd)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      staged_(std::move(staged)),
      fd_(std::move(fd)) {}

TargetFile::~TargetFile() {
  if (staged_.empty()) return;
  const auto staging = directory_->Staging();
  if (staging.ok()) unlinkat((*staging)->fd().get(), staged_.c_str(), 0);
}

Status TargetFile::Write(uint64_t offset, ByteView bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = RetryInterrupted(
        [&] { return pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (put < 0) return TreeError("write", name_);
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return Status::Ok();
}

Result<size_t> TargetFile::Read(uint64_t offset, MutableByteView out) const {
  return ReadFully(fd_, offset, out, name_);
}

Status TargetFile::SetSize(uint64_t size) const {
  // ftruncate costs a transaction even if it changes nothing, and most files have their size.
  struct stat now = {};
  if (fstat(fd_.get(), &now) == 0 && static_cast<uint64_t>(now.st_size) == size)
    return Status::Ok();
  if (ftruncate(fd_.get(), static_cast<off_t>(size)) == 0) return Status::Ok();
  return TreeError("set the size", name_);
}

Status TargetFile::Place(const SourceAttributes& attributes,
                         const std::vector<SourceXattr>& xattrs) {
  SILTFS_RETURN_IF_ERROR(SetAttributesOf(fd_, attributes, xattrs, name_));
  if (staged_.empty()) {
    if (LinkUnnamed(fd_, directory_->fd_, name_) == 0) return Status::Ok();
    if (errno != EEXIST) return TreeError("give the file its name", name_);
    // Only a rename replaces a name.
    SILTFS_ASSIGN_OR_RETURN(StagingDirectory* const staging, directory_->Staging());
    std::string staged = staging->NewName();
    if (LinkUnnamed(fd_, staging->fd(), staged) != 0)
      return TreeError("give the file a temporary name", name_);
    staged_ = std::move(staged);
  }
  SILTFS_ASSIGN_OR_RETURN(StagingDirectory* const staging, directory_->Staging());
  if (renameat(staging->fd().get(), staged_.c_str(), directory_->fd_.get(), name_.c_str()) != 0)
    return TreeError("give the file its name", name_);
  staged_.clear();
  return Status::Ok();
}

Result<std::shared_ptr<const TargetDirectory>> TargetDirectory::OpenOrMake(
    const std::string& path) {
  const bool made = mkdir(path.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return TreeError("make the directory", path);
  Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return TreeError("open the directory", path);
  return std::make_shared<const TargetDirectory>(std::move(fd));
}

Result<uint64_t> TargetDirectory::FileSystemAround(const std::string& path) {
  std::filesystem::path around = path;
  struct stat info = {};
  while (stat(around.empty() ? "." : around.c_str(), &info) != 0) {
    if (errno != ENOENT || around.empty() || !around.has_relative_path())
      return TreeError("read the attributes", path);
    around = around.parent_path();
  }
  return info.st_dev;
}

Result<std::optional<SourceAttributes>> TargetDirectory::Find(const std::string& name) const {
  struct stat info = {};
  if (fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::optional<SourceAttributes>();
    return TreeError("read the attributes", name);
  }
  return std::optional(FromStat(info));
}

Result<std::shared_ptr<const TargetDirectory>> TargetDirectory::OpenDirectory(
    const std::string& name) const {
  for (const bool first : {true, false}) {
    if (mkdirat(fd_.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return TreeError("make the directory", name);
    Descriptor fd(openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd.valid()) return std::make_shared<const TargetDirectory>(std::move(fd));
    const bool other_type = errno == ENOTDIR || errno == ELOOP;
    if (!other_type || !first) return TreeError("open the directory", name);
    if (unlinkat(fd_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
      return TreeError("replace the file", name);
  }
  return TreeError("open the directory", name);
}

Result<StagingDirectory*> TargetDirectory::Staging() const {
  const MutexLock lock(mutex_);
  if (!staging_) {
    SILTFS_ASSIGN_OR_RETURN(staging_, StagingDirectory::Make(fd_));
  }
  return staging_.get();
}

Result<std::shared_ptr<TargetFile>> TargetDirectory::NewFile(const std::string& name) const {
  Descriptor unnamed = NewUnnamed(fd_);
  if (unnamed.valid())
    return std::make_shared<TargetFile>(shared_from_this(), name, std::string(),
                                        std::move(unnamed));
  SILTFS_ASSIGN_OR_RETURN(StagingDirectory* const staging, Staging());
  std::string staged = staging->NewName();
  Descriptor fd(openat(staging->fd().get(), staged.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return TreeError("make the file", name);
  return std::make_shared<TargetFile>(shared_from_this(), name, std::move(staged), std::move(fd));
}

Status TargetDirectory::PlaceSpecial(const std::string& name, const SourceAttributes& attributes,
                                     const std::string& target,
                                     const std::vector<SourceXattr>& xattrs) const {
  SILTFS_ASSIGN_OR_RETURN(StagingDirectory* const staging, Staging());
  const int directory = staging->fd().get();
  const std::string temporary = staging->NewName();
  const bool is_link = attributes.IsSymlink();
  const int made = is_link ? symlinkat(target.c_str(), directory, temporary.c_str())
                           : mknodat(directory, temporary.c_str(),
                                     (attributes.mode & S_IFMT) | 0600, attributes.device);
  if (made != 0) return TreeError("make the entry", name);
  const auto place = [&]() -> Status {
    // The attributes are set through a descriptor, whose path leads to the node itself, even if
    // that is a link.
    const Descriptor node(openat(directory, temporary.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!node.valid()) return TreeError("open the entry", name);
    if (fchownat(node.get(), "", attributes.uid, attributes.gid, AT_EMPTY_PATH) != 0 &&
        IsSuperuser()) {
      return TreeError("set the owner", name);
    }
    const std::string path = fmt::format("/proc/self/fd/{}", node.get());
    SILTFS_RETURN_IF_ERROR(SetXattrs(
        xattrs, {},
        [&](const SourceXattr& xattr) {
          return setxattr(path.c_str(), xattr.name.c_str(), xattr.value.data(), xattr.value.size(),
                          0);
        },
        [](const char*) { return 0; }, name));
    if (!is_link && chmod(path.c_str(), attributes.mode & 07777) != 0)
      return TreeError("set the mode", name);
    const timespec times[2] = {ToTime(attributes.atime), ToTime(attributes.mtime)};
    if (utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return TreeError("set the times", name);
    if (renameat(directory, temporary.c_str(), fd_.get(), name.c_str()) != 0)
      return TreeError("give the entry its name", name);
    return Status::Ok();
  };
  Status placed = place();
  if (!placed.ok()) unlinkat(directory, temporary.c_str(), 0);
  return placed;
}

Status TargetDirectory::PlaceLink(const std::string& name, const TargetDirectory& directory,
                                  const std::string& existing) const {
  const auto link_as = [&](const Descriptor& place, const std::string& as) {
    return linkat(directory.fd_.get(), existing.c_str(), place.get(), as.c_str(), 0);
  };
  if (link_as(fd_, name) == 0) return Status::Ok();
  if (errno != EEXIST) return TreeError("make the link", name);
  SILTFS_ASSIGN_OR_RETURN(StagingDirectory* const staging, Staging());
  const std::string temporary = staging->NewName();
  if (link_as(staging->fd(), temporary) != 0) return TreeError("make the link", name);
  Status placed;
  if (renameat(staging->fd().get(), temporary.c_str(), fd_.get(), name.c_str()) != 0)
    placed = TreeError("give the link its name", name);
  // If both names belong to one file already, the rename does nothing.
  unlinkat(staging->fd().get(), temporary.c_str(), 0);
  return placed;
}

Status TargetDirectory::SetAttributes(const SourceAttributes& attributes,
                                      const std::vector<SourceXattr>& xattrs) const {
  {
    // The removal of the staging directory changes this directory's times, so it comes first.
    const MutexLock lock(mutex_);
    staging_.reset();
  }
  return SetAttributesOf(fd_, attributes, xattrs, ".");
}

}  // namespace siltfs
