// A file that a search for duplicates has found, and one of its names; and the order in which
// sorters of such files hold them.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "fs/mark/sorted_run.h"

namespace siltfs {

struct NamedFile {
  uint64_t inode = 0;
  uint64_t directory = 0;  // that has the name
  uint64_t cookie = 0;     // of the name
  uint64_t root = 0;       // the path at which the walk began
  uint64_t size = 0;       // 0 until the inode was read

  // By inode, and then by name.
  EightWords Encode() const { return {inode, directory, cookie, root, size}; }
  static NamedFile Decode(const EightWords& words) {
    return {words[0], words[1], words[2], words[3], words[4]};
  }
};

}  // namespace siltfs
