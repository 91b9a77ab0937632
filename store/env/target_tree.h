// Writes a tree of files: directories by descriptor, without following symbolic links. A file gets
// its name when it is complete. Until then it has no name at all (O_TMPFILE) if the file system can
// do that. Then the kernel removes it if this process is killed. Otherwise it has a name in a
// staging directory (staging_directory.h), like other entries and like a file that replaces one.
//
// Thread-safety: const functions from any thread; a TargetFile may be written by several threads at
// different offsets. Ownership: each object owns its descriptor; a TargetFile that was not placed
// is gone when it is destroyed. Errors: Status with the name and the cause. Durability: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/posix_descriptor.h"
#include "store/env/source_tree.h"
#include "store/env/staging_directory.h"

namespace siltfs {

class TargetDirectory;

class TargetFile {
 public:
  // `staged`: its name in the directory's staging directory; empty if it has no name.
  TargetFile(std::shared_ptr<const TargetDirectory> directory, std::string name, std::string staged,
             Descriptor fd);
  ~TargetFile();
  TargetFile(const TargetFile&) = delete;
  TargetFile& operator=(const TargetFile&) = delete;

  Status Write(uint64_t offset, ByteView bytes) const;
  Result<size_t> Read(uint64_t offset, MutableByteView out) const;
  Status SetSize(uint64_t size) const;
  // Gives the file its attributes and its name, which may replace an old file.
  Status Place(const SourceAttributes& attributes, const std::vector<SourceXattr>& xattrs);

 private:
  const std::shared_ptr<const TargetDirectory> directory_;
  const std::string name_;
  std::string staged_;  // empty once it is placed
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

  // Removes temporary names that interrupted exports have left in this directory.
  void RemoveAbandoned() const { StagingDirectory::RemoveAbandoned(fd_); }
  // Attributes of a name; nullopt if there is none.
  Result<std::optional<SourceAttributes>> Find(const std::string& name) const;
  // Opens the directory of this name. Makes it if it is missing, and replaces what is no directory.
  Result<std::shared_ptr<const TargetDirectory>> OpenDirectory(const std::string& name) const;
  // A file that will get this name.
  Result<std::shared_ptr<TargetFile>> NewFile(const std::string& name) const;
  // Makes an entry of another type than file and directory, or another name of a file. It may
  // replace an old entry.
  Status PlaceSpecial(const std::string& name, const SourceAttributes& attributes,
                      const std::string& target, const std::vector<SourceXattr>& xattrs) const;
  Status PlaceLink(const std::string& name, const TargetDirectory& directory,
                   const std::string& existing) const;
  // Sets the directory's own attributes. Call it when all entries are placed.
  Status SetAttributes(const SourceAttributes& attributes,
                       const std::vector<SourceXattr>& xattrs) const;

 private:
  friend class TargetFile;

  // The staging directory, which is made when it is first needed.
  Result<StagingDirectory*> Staging() const;

  const Descriptor fd_;
  mutable Mutex mutex_;
  mutable std::unique_ptr<StagingDirectory> staging_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
