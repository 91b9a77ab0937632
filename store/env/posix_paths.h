// Resolves paths to descriptors and names. Follows or refuses symbolic links. If there is an anchor
// (PosixEnvOptions::anchor), resolves paths below it relative to the opened anchor directory.
//
// Thread-safety: every call from any thread. Errors: those of open(2), in errno; ELOOP for a
// refused link anywhere on the path. Without openat2(2) (Linux before 5.6, containers that refuse
// it) only a link as the last name is detected.
#pragma once

#include <sys/types.h>

#include <string>

#include "store/env/posix_descriptor.h"
#include "store/env/posix_env.h"

namespace siltfs {

class PosixPaths {
 public:
  explicit PosixPaths(SymbolicLinks links, const std::string& anchor = {});

  bool anchored() const { return anchor_directory_.valid(); }

  // Opens the file at `path`. `flags` are those of open(2); O_CLOEXEC is added. After a failure the
  // result is not valid.
  Descriptor Open(const std::string& path, int flags, mode_t mode = 0) const;

  // The last name of a path, and the descriptor of the directory before it. For the "at" calls,
  // which do not follow a link of that name. `directory` is -1 if the directory cannot be opened.
  class Name {
   public:
    Name(const PosixPaths& paths, const std::string& path);
    bool valid() const { return directory_ != -1; }
    int directory() const { return directory_; }
    const char* name() const { return name_.c_str(); }

   private:
    Descriptor parent_;
    int directory_ = -1;
    std::string name_;
  };

 private:
  // A directory and a path relative to it. A path below the anchor is relative to the anchor's
  // directory.
  struct Place {
    int directory;
    const char* path;
  };
  Place Find(const std::string& path) const;

  const bool refuses_links_;
  const bool sees_whole_path_;
  const std::string anchor_;
  const Descriptor anchor_directory_;
};

}  // namespace siltfs
