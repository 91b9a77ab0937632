#include "fs/records/path_finder.h"

#include <optional>
#include <utility>

#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/table_cursor.h"

namespace siltfs {
namespace {

constexpr int kDeepest = 4096;
constexpr uint64_t kRoot = 1;  // docs/format.md

class DirectoryPaths {
 public:
  explicit DirectoryPaths(const KvSnapshot& snapshot) : snapshot_(snapshot) {}

  // Returns the directory's path with a slash at the end; empty if its parents do not lead to the
  // root.
  Result<std::string> PathOf(uint64_t directory, int depth = 0) {
    if (directory == kRoot) return std::string("/");
    if (const auto known = known_.find(directory); known != known_.end()) return known->second;
    if (depth > kDeepest) return std::string();
    std::string path;
    SILTFS_ASSIGN_OR_RETURN(const auto value, snapshot_.Get(InodeKey(directory)));
    const auto record = value ? InodeRecord::Decode(*value)
                              : Result<InodeRecord>(Status(StatusCode::kNotFound, "no inode"));
    if (record.ok() && record->IsDirectory()) {
      SILTFS_ASSIGN_OR_RETURN(const auto name, NameIn(record->parent, directory));
      SILTFS_ASSIGN_OR_RETURN(const std::string above, PathOf(record->parent, depth + 1));
      if (name && !above.empty()) path = above + *name + "/";
    }
    known_[directory] = path;
    return path;
  }

 private:
  Result<std::optional<std::string>> NameIn(uint64_t parent, uint64_t child) const {
    const KeyRange range = RangeOf(Table::kDirectoryEntry, parent);
    auto iterator = snapshot_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto entry = NameEntry::Decode(iterator->value());
      if (entry.ok() && entry->inode == child)
        return std::optional(std::string(iterator->key().substr(9)));
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return std::optional<std::string>();
  }

  const KvSnapshot& snapshot_;
  std::map<uint64_t, std::string> known_;
};

}  // namespace

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
