// Writes a tree of files: directories by descriptor, without following symbolic links. A file is
// written under a temporary name in its directory, and renamed when it is complete.
//
// Thread-safety: const functions from any thread; a TargetFile may be written by several threads at
// different offsets. Ownership: each object owns its descriptor; a TargetFile that was not placed
// removes its temporary name when it is destroyed, and must not outlive its directory. Errors:
// Status with the name and the cause. Durability: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/posix_descriptor.h"
#include "store/env/source_tree.h"

namespace siltfs {

class TargetDirectory;

class TargetFile {
 public:
  TargetFile(std::shared_ptr<const TargetDirectory> directory, std::string temporary,
             Descriptor fd);
  ~TargetFile();
  TargetFile(const TargetFile&) = delete;
  TargetFile& operator=(const TargetFile&) = delete;

  Status Write(uint64_t offset, ByteView bytes) const;
  Result<size_t> Read(uint64_t offset, MutableByteView out) const;
  Status SetSize(uint64_t size) const;
  // Gives the file its attributes and its name, which may replace an old file.
  Status Place(const std::string& name, const SourceAttributes& attributes,
               const std::vector<SourceXattr>& xattrs);

 private:
  const std::shared_ptr<const TargetDirectory> directory_;
  std::string temporary_;  // empty once it is placed
  const Descriptor fd_;
};

class TargetDirectory : public std::enable_shared_from_this<TargetDirectory> {
 public:
  // Opens the directory at `path`; makes it if only the last name of the path is missing.
  static Result<std::shared_ptr<const TargetDirectory>> OpenOrMake(const std::string& path);
  // The file system (SourceAttributes::file_system) of the path, or of its nearest parent that
  // exists.
  static Result<uint64_t> FileSystemAround(const std::string& path);
  explicit TargetDirectory(Descriptor fd) : fd_(std::move(fd)) {}

  // Attributes of a name; nullopt if there is none.
  Result<std::optional<SourceAttributes>> Find(const std::string& name) const;
  // Opens the directory of this name. Makes it if it is missing, and replaces what is no directory.
  Result<std::shared_ptr<const TargetDirectory>> OpenDirectory(const std::string& name) const;
  // A file that will get this name.
  Result<std::shared_ptr<TargetFile>> NewFile(const std::string& name) const;
  // Makes an entry of another type than file and directory, or another name of a file, under a
  // temporary name, and renames it.
  Status PlaceSpecial(const std::string& name, const SourceAttributes& attributes,
                      const std::string& target, const std::vector<SourceXattr>& xattrs) const;
  Status PlaceLink(const std::string& name, const TargetDirectory& directory,
                   const std::string& existing) const;
  // Sets the directory's own attributes.
  Status SetAttributes(const SourceAttributes& attributes,
                       const std::vector<SourceXattr>& xattrs) const;

 private:
  friend class TargetFile;

  const Descriptor fd_;
};

}  // namespace siltfs
