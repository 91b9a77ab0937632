// A benchmark's own directory, removed with its contents when the benchmark ends.
#pragma once

#include <string>

#include "store/env/env.h"

namespace siltfs {

class ScratchDirectory {
 public:
  // Makes the directory below `parent`, which must exist, or below the system's temporary directory
  // if `parent` is empty. Borrows `env`. Throws BenchFailure.
  ScratchDirectory(Env& env, const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  Env& env_;
  const std::string path_;
};

}  // namespace siltfs
