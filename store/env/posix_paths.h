// From paths to descriptors, and what is done to names: with symbolic links on the way, or none;
// below an anchor (posix_env.h) or anywhere.
//
// Thread-safety: every call from any thread. Errors: as open(2) has them, in errno; where links are
// refused and one is met, ELOOP, wherever on the path it stands. Where the system knows no
// openat2(2), or refuses it (Linux before 5.6, containers with older rules), only a link in the
// last name's place is seen.
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

  // O_CLOEXEC is added to the flags of open(2). Not valid where it fails.
  Descriptor Open(const std::string& path, int flags, mode_t mode = 0) const;

  // The last name of a path and where it stands, for the calls that end in "at" and follow no link
  // that bears the name. `directory` is -1 where it cannot be had.
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
  // A path below the anchor is relative to the anchor's directory.
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
