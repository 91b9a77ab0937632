// Finds the file or directory that the user's argument names in a mounted store.
//
// Errors: kNotFound if the path is not in a mounted siltfs file system; kIoError if it does not
// exist; those of the daemon, which is asked first, because the kernel would wait forever for a
// daemon that does not answer.
#pragma once

#include <string>

#include "fs/control/client.h"
#include "store/base/result.h"
#include "store/env/source_tree.h"

namespace siltfs {

// A path's last name, and the directory that it is in.
struct SplitPath {
  explicit SplitPath(const std::string& path);

  std::string directory;
  std::string name;  // empty: the path is a directory's own
};

// The directory at this path; symbolic links are followed.
Result<SourceAttributes> DirectoryAt(const std::string& path);
// What is at this path. A symbolic link at its end is not followed, unless a slash comes after it.
Result<SourceAttributes> SourceAt(const std::string& path);
// kNotFound for a path that is in no mounted store.
Status NotMounted(const std::string& path);
// The mount in which this path lies; its daemon has answered.
Result<control::DaemonAddress> MountAround(const std::string& path);

}  // namespace siltfs
