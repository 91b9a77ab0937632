// Reads a whole tree through system calls only, to check that it is sound and unchanged.
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
  // One line per entry, ordered by path: attributes (except access times), and a digest of extended
  // attributes and content.
  std::vector<std::string> lines;
};

// Throws UnsoundTree, with all problems, if a file cannot be read, an entry's type or number
// differs from stat, or a link count differs from the number of names.
//
// `fresh`: the kernel has no listing from before a move of a directory (such a listing keeps the
// old ".."), so listed parents are checked, too.
TreeDigest DigestTree(const std::string& root, bool fresh);

}  // namespace siltfs::testing
