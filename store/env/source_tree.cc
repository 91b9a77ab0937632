#include "store/env/source_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "store/env/posix_tree.h"

namespace siltfs {
namespace {

Result<SourceAttributes> StatOf(const Descriptor& fd, const std::string& name) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return TreeError("read the attributes", name);
  return FromStat(info);
}

// Without O_NOATIME if this user may not use it.
Descriptor OpenQuietly(int directory, const char* name, int flags) {
  Descriptor fd(
      RetryInterrupted([&] { return openat(directory, name, flags | O_NOATIME | O_CLOEXEC); }));
  if (fd.valid() || errno != EPERM) return fd;
  return Descriptor(RetryInterrupted([&] { return openat(directory, name, flags | O_CLOEXEC); }));
}

// Calls `get` with growing buffers until the result fits.
Result<std::optional<std::string>> ReadGrowing(
    const std::function<ssize_t(char* buffer, size_t size)>& get, const std::string& name) {
  std::string buffer(256, '\0');
  while (true) {
    const ssize_t size = get(buffer.data(), buffer.size());
    if (size >= 0) {
      buffer.resize(static_cast<size_t>(size));
      return std::optional<std::string>(std::move(buffer));
    }
    if (errno == ENOTSUP || errno == ENODATA) return std::optional<std::string>();
    if (errno != ERANGE || buffer.size() >= 256 << 10)
      return TreeError("read the extended attributes", name);
    buffer.resize(buffer.size() * 8);
  }
}

Result<std::vector<SourceXattr>> ReadXattrs(
    const std::function<ssize_t(char* buffer, size_t size)>& list,
    const std::function<ssize_t(const char* name, char* buffer, size_t size)>& get,
    const std::string& name) {
  std::vector<SourceXattr> xattrs;
  SILTFS_ASSIGN_OR_RETURN(const auto names, ReadGrowing(list, name));
  if (!names) return xattrs;
  for (size_t at = 0; at < names->size();) {
    const char* one = names->c_str() + at;
    SILTFS_ASSIGN_OR_RETURN(
        auto value,
        ReadGrowing([&](char* buffer, size_t size) { return get(one, buffer, size); }, name));
    if (value) xattrs.push_back({one, *std::move(value)});  // else removed meanwhile
    at += std::string_view(one).size() + 1;
  }
  return xattrs;
}

Result<std::vector<SourceXattr>> XattrsOfDescriptor(const Descriptor& fd, const std::string& name) {
  return ReadXattrs([&](char* buffer, size_t size) { return flistxattr(fd.get(), buffer, size); },
                    [&](const char* xattr, char* buffer, size_t size) {
                      return fgetxattr(fd.get(), xattr, buffer, size);
                    },
                    name);
}

}  // namespace

Result<SourceAttributes> SourceFile::Attributes() const { return StatOf(fd_, name_); }

Result<std::vector<SourceXattr>> SourceFile::Xattrs() const {
  return XattrsOfDescriptor(fd_, name_);
}

Result<size_t> SourceFile::Read(uint64_t offset, MutableByteView out) const {
  return ReadFully(fd_, offset, out, name_);
}

Result<std::optional<SourceFile::Range>> SourceFile::NextData(uint64_t offset,
                                                              uint64_t size) const {
  if (offset >= size) return std::optional<Range>();
  const off_t data = lseek(fd_.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) {
    if (errno == ENXIO) return std::optional<Range>();
    if (errno == EINVAL) return std::optional<Range>({offset, size});
    return TreeError("find the data", name_);
  }
  const off_t hole = lseek(fd_.get(), data, SEEK_HOLE);
  if (hole < 0) return TreeError("find the holes", name_);
  const Range range{static_cast<uint64_t>(data),
                    std::min<uint64_t>(static_cast<uint64_t>(hole), size)};
  return range.begin < range.end ? std::optional<Range>(range) : std::optional<Range>();
}

Result<std::shared_ptr<const SourceDirectory>> SourceDirectory::Open(const std::string& path) {
  Descriptor fd = OpenQuietly(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return TreeError("open the directory", path);
  return std::make_shared<const SourceDirectory>(std::move(fd));
}

Result<std::shared_ptr<const SourceDirectory>> SourceDirectory::OpenForNames(
    const std::string& path) {
  Descriptor fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return TreeError("open the directory", path);
  return std::make_shared<const SourceDirectory>(std::move(fd));
}

Result<SourceAttributes> SourceDirectory::Attributes() const { return StatOf(fd_, "."); }

Result<std::vector<SourceXattr>> SourceDirectory::Xattrs() const {
  return XattrsOfDescriptor(fd_, ".");
}

Result<std::vector<SourceDirectory::Name>> SourceDirectory::List() const {
  // A stream owns its descriptor, so it gets a new one, with a position of its own.
  Descriptor own = OpenQuietly(fd_.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!own.valid()) return TreeError("list the directory", ".");
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(own.get()), closedir);
  if (!stream) return TreeError("list the directory", ".");
  own.Release();
  std::vector<Name> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const uint32_t type = entry->d_type == DT_UNKNOWN ? 0 : DTTOIF(entry->d_type);
    names.push_back({std::string(name), entry->d_ino, type});
  }
  if (errno != 0) return TreeError("list the directory", ".");
  std::sort(names.begin(), names.end(),
            [](const Name& a, const Name& b) { return a.inode < b.inode; });
  return names;
}

Result<SourceAttributes> SourceDirectory::AttributesOf(const std::string& name) const {
  struct stat info = {};
  if (fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return TreeError("read the attributes", name);
  return FromStat(info);
}

Result<std::string> SourceDirectory::ReadLink(const std::string& name) const {
  std::string target(4096, '\0');
  const ssize_t size = readlinkat(fd_.get(), name.c_str(), target.data(), target.size());
  if (size < 0) return TreeError("read the symbolic link", name);
  target.resize(static_cast<size_t>(size));
  return target;
}

Result<std::vector<SourceXattr>> SourceDirectory::XattrsOf(const std::string& name) const {
  // There are no calls for a name in an open directory before Linux 6.13.
  const std::string path = fmt::format("/proc/self/fd/{}/{}", fd_.get(), name);
  return ReadXattrs(
      [&](char* buffer, size_t size) { return llistxattr(path.c_str(), buffer, size); },
      [&](const char* xattr, char* buffer, size_t size) {
        return lgetxattr(path.c_str(), xattr, buffer, size);
      },
      name);
}

Result<std::shared_ptr<const SourceDirectory>> SourceDirectory::OpenDirectory(
    const std::string& name) const {
  Descriptor fd = OpenQuietly(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd.valid()) return TreeError("open the directory", name);
  return std::make_shared<const SourceDirectory>(std::move(fd));
}

Result<SourceFile> SourceDirectory::OpenFile(const std::string& name) const {
  // O_NONBLOCK: a fifo that has taken the name must not make the open wait.
  Descriptor fd = OpenQuietly(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd.valid()) {
    if (errno == ELOOP || errno == ENXIO)
      return Status(StatusCode::kStale, "is no longer a regular file").At(name);
    return TreeError("open", name);
  }
  return SourceFile(name, std::move(fd));
}

}  // namespace siltfs
