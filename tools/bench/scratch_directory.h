// A directory of a benchmark's own, gone with all that is in it when the benchmark ends.
#pragma once

#include <string>

#include "store/env/env.h"

namespace siltfs {

class ScratchDirectory {
 public:
  // Borrows `env`. Below `parent`, which must exist; below the system's temporary directory if that
  // is empty. Throws BenchFailure.
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
