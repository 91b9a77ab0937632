#include "tools/bench/scratch_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tools/bench/bench.h"

namespace siltfs {

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  const std::filesystem::path above =
      parent.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(parent);
  path_ = above / "siltfs-bench-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw BenchFailure(above.string() + ": no directory can be made in it: " +
                       std::generic_category().message(errno));
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace siltfs
