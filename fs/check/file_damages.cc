#include "fs/check/file_damages.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "fs/open/store_layout.h"
#include "fs/records/path_finder.h"

namespace siltfs {

void FileDamages::Add(uint64_t inode, const char* code, uint64_t offset, std::string message) {
  const std::pair<uint64_t, std::string> key(inode, code);
  auto found = damages_.find(key);
  if (found == damages_.end()) {
    if (damages_.size() >= kMostFiles) {
      ++beyond_;
      return;
    }
    found = damages_.emplace(key, Damage{}).first;
  }
  Damage& damage = found->second;
  if (damage.count++ > 0 && offset >= damage.offset) return;
  damage.offset = offset;
  damage.message = std::move(message);
}

Status FileDamages::Report(CheckContext& context, const KvSnapshot& snapshot) const {
  if (damages_.empty()) return Status::Ok();
  std::set<uint64_t> inodes;
  for (const auto& [key, damage] : damages_) inodes.insert(key.first);
  SILTFS_ASSIGN_OR_RETURN(const auto paths, FindPaths(snapshot, inodes));
  for (const auto& [key, damage] : damages_) {
    const auto path = paths.find(key.first);
    std::string message = damage.message;
    if (damage.count > 1) message += fmt::format(" ({} places in the file)", damage.count);
    context.Report({.code = key.second,
                    .path = path == paths.end() ? std::string() : path->second,
                    .offset = damage.offset,
                    .inode = key.first,
                    .message = std::move(message)});
  }
  if (beyond_ > 0) {
    context.Report({.code = "more-files",
                    .path = MetadataPath(context.store()),
                    .message = fmt::format("{} more places in other files are damaged", beyond_)});
  }
  return Status::Ok();
}

}  // namespace siltfs
