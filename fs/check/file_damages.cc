#include "fs/check/file_damages.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "fs/interface/snapshots.h"
#include "fs/open/store_layout.h"

namespace siltfs {

void FileDamages::Add(const FileVersion& file, const char* code, uint64_t offset,
                      std::string message) {
  const std::pair<FileVersion, std::string> key(file, code);
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
  std::set<FileVersion> files;
  for (const auto& [key, damage] : damages_) files.insert(key.first);
  SILTFS_ASSIGN_OR_RETURN(const auto names,
                          NameFiles(snapshot, files, "/" + std::string(kSnapshotDirectoryName)));
  for (const auto& [key, damage] : damages_) {
    const FileName& name = names.at(key.first);
    std::string message = damage.message;
    if (damage.count > 1) message += fmt::format(" ({} places in the file)", damage.count);
    if (!name.snapshots.empty())
      message += fmt::format("; inode {} as of {}", key.first.inode, name.snapshots);
    context.Report({.code = key.second,
                    .path = name.path,
                    .offset = damage.offset,
                    .inode = key.first.inode,
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
