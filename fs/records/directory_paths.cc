#include "fs/records/directory_paths.h"

#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"

namespace siltfs {
namespace {

constexpr int kDeepest = 4096;
constexpr uint64_t kRoot = 1;  // docs/format.md

}  // namespace

Result<std::string> DirectoryPaths::PathOf(uint64_t directory) {
  if (known_.size() >= kMostKnown) known_.clear();
  return Find(directory, 0);
}

Result<std::string> DirectoryPaths::Find(uint64_t directory, int depth) {
  if (directory == kRoot) return std::string("/");
  if (const auto known = known_.find(directory); known != known_.end()) return known->second;
  if (depth > kDeepest) return std::string();
  std::string path;
  SILTFS_ASSIGN_OR_RETURN(const auto value, state_.Get(InodeKey(directory)));
  const auto record = value ? InodeRecord::Decode(*value)
                            : Result<InodeRecord>(Status(StatusCode::kNotFound, "no inode"));
  if (record.ok() && record->IsDirectory()) {
    SILTFS_ASSIGN_OR_RETURN(const auto name, NameIn(record->parent, directory));
    SILTFS_ASSIGN_OR_RETURN(const std::string above, Find(record->parent, depth + 1));
    if (name && !above.empty()) path = above + *name + "/";
  }
  known_[directory] = path;
  return path;
}

Result<std::optional<std::string>> DirectoryPaths::NameIn(uint64_t parent, uint64_t child) const {
  const KeyRange range = RangeOf(Table::kDirectoryEntry, parent);
  auto iterator = state_.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto entry = NameEntry::Decode(iterator->value());
    if (entry.ok() && entry->inode == child)
      return std::optional(std::string(iterator->key().substr(9)));
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  return std::optional<std::string>();
}

}  // namespace siltfs
