// The user and the group that a file belongs to.
#pragma once

#include <cstdint>

namespace siltfs {

struct FileOwner {
  uint32_t uid = 0;
  uint32_t gid = 0;

  bool operator==(const FileOwner&) const = default;
};

}  // namespace siltfs
