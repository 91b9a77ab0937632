// Reads a whole tree through system calls only, to check that it is consistent and unchanged.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace siltfs::testing {

class UnsoundTree : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TreeDigest {
  uint64_t bytes = 0;  // of all file contents
  // One line per entry, ordered by path. A line has the attributes (except access times), and a
  // digest of extended attributes and content.
  std::vector<std::string> lines;
};

// Reads the tree. Throws UnsoundTree, with all problems, in these cases: a file cannot be read; an
// entry's type or inode number differs from stat; a link count differs from the number of names.
//
// If `fresh` is set, the ".." of each listing must be the parent, too. Set it only if the kernel
// has cached no listing from before a directory was moved, because such a listing has the old "..".
TreeDigest DigestTree(const std::string& root, bool fresh);

}  // namespace siltfs::testing
