#include "fs/check/directory_tree_check.h"

#include <algorithm>

#include "fs/interface/file_system.h"
#include "fs/open/store_layout.h"
#include "fs/records/schema.h"

namespace siltfs {

Result<std::optional<uint64_t>> DirectoryTreeCheck::ParentOf(uint64_t directory) const {
  if (directory == kRootInode) return std::optional<uint64_t>();
  SILTFS_ASSIGN_OR_RETURN(const auto value, snapshot_.Get(InodeKey(directory)));
  if (!value) return std::optional<uint64_t>();
  const auto record = InodeRecord::Decode(*value);
  if (!record.ok() || !record->IsDirectory() || record->links == 0)
    return std::optional<uint64_t>();
  return std::optional(record->parent);
}

Status DirectoryTreeCheck::Add(uint64_t directory, const InodeRecord& record) {
  if (directory == kRootInode || record.links == 0 || record.parent < directory)
    return Status::Ok();
  // Walk up until the root or until `directory` again. The mark (Brent's algorithm) detects a cycle
  // further up that does not contain `directory`. Another walk, which begins in that cycle, reports
  // that cycle.
  uint64_t at = record.parent;
  uint64_t lowest = directory;
  uint64_t mark = at;
  for (uint64_t steps = 0, next_mark = 2; at != directory; ++steps) {
    lowest = std::min(lowest, at);
    SILTFS_ASSIGN_OR_RETURN(const auto parent, ParentOf(at));
    if (!parent || *parent == mark) return Status::Ok();
    at = *parent;
    if (steps == next_mark) {
      mark = at;
      next_mark *= 2;
    }
  }
  // Several walks may begin in one cycle: one at each directory with a lower number than its
  // parent. The directory with the lowest number in the cycle is always one of them. Only the walk
  // from this directory reports the cycle.
  if (lowest != directory) return Status::Ok();
  context_.Report({.code = "directory-cycle",
                   .path = MetadataPath(context_.store()),
                   .inode = directory,
                   .message = "the directory lies in itself and cannot be reached from the root"});
  return Status::Ok();
}

}  // namespace siltfs
