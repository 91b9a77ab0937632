// Reads a tree of files that a command copies: directories by descriptor, without following
// symbolic links, so that a change of the tree by another process never leads out of it.
//
// Reading does not change access times where the system allows that. Thread-safety: const functions
// from any thread; a SourceFile belongs to one thread. Ownership: each object owns its descriptor;
// a child does not need its parent. Errors: Status with the name and the cause; kNotFound if the
// name is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

struct SourceAttributes {
  uint64_t file_system = 0;  // st_dev
  uint64_t inode = 0;
  uint32_t mode = 0;  // type and permission bits
  uint32_t links = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;  // st_rdev
  uint64_t size = 0;
  uint64_t allocated_bytes = 0;
  int64_t atime = 0;  // nanoseconds since 1970
  int64_t mtime = 0;
  int64_t ctime = 0;

  bool IsDirectory() const { return (mode & 0170000) == 0040000; }
  bool IsRegular() const { return (mode & 0170000) == 0100000; }
  bool IsSymlink() const { return (mode & 0170000) == 0120000; }
};

struct SourceXattr {
  std::string name;
  std::string value;
};

class SourceFile {
 public:
  SourceFile(std::string name, Descriptor fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  Result<SourceAttributes> Attributes() const;
  Result<std::vector<SourceXattr>> Xattrs() const;
  // Returns the number of bytes read, fewer than asked for only at the end of the file.
  Result<size_t> Read(uint64_t offset, MutableByteView out) const;
  // The first range of data [begin, end) at or after `offset`; nullopt if only holes follow. A file
  // system that does not know holes has one range.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  Result<std::optional<Range>> NextData(uint64_t offset, uint64_t size) const;

 private:
  std::string name_;
  Descriptor fd_;
};

class SourceDirectory {
 public:
  // Opens the directory at `path`. Symbolic links in the path are followed.
  static Result<std::shared_ptr<const SourceDirectory>> Open(const std::string& path);
  // The same for a directory that this user need not be allowed to list. Only Attributes and calls
  // with a name work.
  static Result<std::shared_ptr<const SourceDirectory>> OpenForNames(const std::string& path);
  explicit SourceDirectory(Descriptor fd) : fd_(std::move(fd)) {}

  Result<SourceAttributes> Attributes() const;
  Result<std::vector<SourceXattr>> Xattrs() const;

  struct Name {
    std::string name;
    uint64_t inode = 0;
    uint32_t type = 0;  // type bits of the mode; 0 if the file system does not tell
  };
  // All names except "." and "..", in the order of their inode numbers, in which file systems store
  // inodes.
  Result<std::vector<Name>> List() const;
  // These do not follow a symbolic link of this name.
  Result<SourceAttributes> AttributesOf(const std::string& name) const;
  Result<std::string> ReadLink(const std::string& name) const;
  Result<std::vector<SourceXattr>> XattrsOf(const std::string& name) const;
  Result<std::shared_ptr<const SourceDirectory>> OpenDirectory(const std::string& name) const;
  // Opens a regular file; kStale if another type of file has the name now.
  Result<SourceFile> OpenFile(const std::string& name) const;

 private:
  const Descriptor fd_;
};

}  // namespace siltfs
