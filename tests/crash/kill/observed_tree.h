// What is really there below a directory, read through the mount.
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

// By name relative to the directory; names of one file share it.
using ObservedTree = std::map<std::string, std::shared_ptr<const ObservedFile>>;

// Throws Failure for what cannot be read, and for what no writer makes.
ObservedTree ReadTree(const std::string& directory);

}  // namespace siltfs::killtest
