#include "fs/records/path_finder.h"

#include <utility>

#include "fs/records/directory_entry.h"
#include "fs/records/directory_paths.h"
#include "fs/records/table_cursor.h"

namespace siltfs {

Result<std::map<uint64_t, std::string>> FindPaths(const KvSnapshot& snapshot,
                                                  const std::set<uint64_t>& inodes) {
  // For each inode, one directory in which it has a name, and this name.
  std::map<uint64_t, std::pair<uint64_t, std::string>> names;
  TableCursor cursor(snapshot, Table::kDirectoryEntry);
  for (; cursor.inode() != TableCursor::kEnd && names.size() < inodes.size(); cursor.Next()) {
    const auto entry = NameEntry::Decode(cursor.value());
    if (entry.ok() && inodes.contains(entry->inode))
      names.try_emplace(entry->inode, cursor.inode(), std::string(cursor.rest()));
  }
  SILTFS_RETURN_IF_ERROR(cursor.status());
  std::map<uint64_t, std::string> paths;
  DirectoryPaths directories(snapshot);
  for (const auto& [inode, place] : names) {
    SILTFS_ASSIGN_OR_RETURN(const std::string above, directories.PathOf(place.first));
    if (!above.empty()) paths[inode] = above + place.second;
  }
  return paths;
}

}  // namespace siltfs
