#include "fs/import/tree_remover.h"

#include <string>
#include <utility>
#include <vector>

namespace siltfs {
namespace {

// How many names of a directory are held at a time.
constexpr size_t kNamesAtOnce = 256;
constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kDirectory = 0040000;

struct Entry {
  std::string name;
  InodeNumber inode = 0;
  bool directory = false;
};

}  // namespace

Result<uint64_t> TreeRemover::Remove(InodeNumber parent, std::string_view name) {
  const auto found = file_system_.Lookup(parent, name);
  if (found.status().Is(StatusCode::kNotFound)) return uint64_t{0};
  SILTFS_RETURN_IF_ERROR(found.status());
  file_system_.Forget(found->inode, 1);
  const bool directory = (found->mode & kTypeMask) == kDirectory;
  if (directory) {
    // A stack of directories instead of recursion: trees may be deep.
    struct Level {
      InodeNumber parent;
      Entry self;
      std::vector<Entry> children;
      uint64_t cookie = 0;
    };
    std::vector<Level> levels;
    levels.push_back({parent, {std::string(name), found->inode, true}, {}, 0});
    while (!levels.empty()) {
      Level& level = levels.back();
      if (stopped_()) return Status(StatusCode::kInterrupted, "was interrupted");
      if (level.children.empty()) {
        SILTFS_RETURN_IF_ERROR(rights_.CheckList(level.self.inode));
        SILTFS_RETURN_IF_ERROR(file_system_.ReadDirectory(
            level.self.inode, level.cookie, [&level](const DirectoryRecord& record) {
              if (record.name == "." || record.name == "..") return true;
              level.children.push_back({std::string(record.name), record.inode,
                                        (record.mode & kTypeMask) == kDirectory});
              level.cookie = record.cookie;
              return level.children.size() < kNamesAtOnce;
            }));
      }
      if (level.children.empty()) {
        const Level done = std::move(level);
        levels.pop_back();
        SILTFS_RETURN_IF_ERROR(RemoveOne(done.parent, done.self.name, done.self.inode, true));
        continue;
      }
      Entry child = std::move(level.children.back());
      level.children.pop_back();
      const InodeNumber in = level.self.inode;
      if (child.directory) {
        levels.push_back({in, std::move(child), {}, 0});
      } else {
        SILTFS_RETURN_IF_ERROR(RemoveOne(in, child.name, child.inode, false));
      }
    }
  } else {
    SILTFS_RETURN_IF_ERROR(RemoveOne(parent, name, found->inode, false));
  }
  return removed_;
}

Status TreeRemover::RemoveOne(InodeNumber parent, std::string_view name, InodeNumber inode,
                              bool directory) {
  SILTFS_RETURN_IF_ERROR(rights_.CheckChange(parent, name));
  const Status removed =
      directory ? file_system_.RemoveDirectory(parent, name) : file_system_.Unlink(parent, name);
  if (removed.Is(StatusCode::kNotFound)) return Status::Ok();  // removed by a program meanwhile
  SILTFS_RETURN_IF_ERROR(removed);
  ++removed_;
  announcer_.NameChanged(parent, name, inode);
  return Status::Ok();
}

}  // namespace siltfs
