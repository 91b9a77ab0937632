// A whole tree, looked at through system calls alone: is it sound, and is it still the same?
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
  uint64_t bytes = 0;  // of files' contents
  // One of each entry, in order of their paths: attributes (access times excepted), and a digest of
  // extended attributes and content.
  std::vector<std::string> lines;
};

// Throws UnsoundTree, with all that is wrong, if a file cannot be read, an entry's type or number
// is not what stat says, or a link count is not the number of names.
//
// `fresh`: the kernel holds no listing from before a directory moved (it keeps the old ".." in
// one), so the parents that are listed are checked, too.
TreeDigest DigestTree(const std::string& root, bool fresh);

}  // namespace siltfs::testing
