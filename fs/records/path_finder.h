// Finds the paths of inodes, for messages. Reads the names in all directories once, for any number
// of inodes. After that, reads the directories above the inodes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fs/kv/kv_store.h"

namespace siltfs {

// Returns one path from the root, such as "/a/b", for each inode that has a path. Inodes under
// damaged directories are left out.
Result<std::map<uint64_t, std::string>> FindPaths(const KvSnapshot& snapshot,
                                                  const std::set<uint64_t>& inodes);

}  // namespace siltfs
