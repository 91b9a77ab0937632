// The actual tree below a directory, read through the mount.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/crash/kill/tree.h"

namespace siltfs::killtest {

struct ObservedFile {
  NodeType type = NodeType::kFile;
  uint64_t inode = 0;
  uint64_t links = 0;
  Content content;
  std::string target;
  std::map<std::string, std::string> xattrs;
};

// Keys are names relative to the directory; hard links of a file share one value.
using ObservedTree = std::map<std::string, std::shared_ptr<const ObservedFile>>;

// Reads the tree. Throws Failure for an unreadable object, and for an object of a type that no
// writer makes.
ObservedTree ReadTree(const std::string& directory);

}  // namespace siltfs::killtest
