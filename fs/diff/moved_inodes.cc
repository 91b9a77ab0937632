#include "fs/diff/moved_inodes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace siltfs {
namespace {

// Calls `visit` for each name in a directory that was made after the older state, with its inode.
Status ForEachNameInNewDirectories(const ComparedStates& states, const ChangedInodes& changed,
                                   const CheckInterruption& check,
                                   const std::function<void(uint64_t inode)>& visit) {
  TreeReader after(*states.after);
  std::vector<ChangedInodes::GotDirectory> left;
  const auto add = [&](uint64_t inode, uint64_t parent) {
    // The names in older directories have versions, and are among the changed names.
    if (inode >= states.inode_limit) left.push_back({inode, parent});
  };
  for (const auto& got : changed.got_directories) add(got.inode, got.parent);
  uint64_t done = 0;
  while (!left.empty()) {
    const auto [directory, parent] = left.back();
    left.pop_back();
    SILTFS_RETURN_IF_ERROR(after.ReadChildDirectory(directory, parent).status());
    std::string last;
    while (true) {
      SILTFS_ASSIGN_OR_RETURN(auto next, after.NextName(directory, last));
      if (!next) break;
      visit(next->entry.inode);
      if (next->entry.IsDirectory()) add(next->entry.inode, directory);
      last = std::move(next->name);
      if (++done % 1024 == 0) SILTFS_RETURN_IF_ERROR(check());
    }
  }
  return Status::Ok();
}

}  // namespace

Result<MovedInodes> MovedInodes::Find(const ComparedStates& states, const ChangedInodes& changed,
                                      const CheckInterruption& check) {
  MovedInodes found;
  if (changed.lost_names.empty()) return found;
  const auto add = [&](uint64_t inode) {
    if (changed.HasLostName(inode)) ++found.moved_[inode].got;
  };
  for (const uint64_t inode : changed.got_names) add(inode);
  SILTFS_RETURN_IF_ERROR(ForEachNameInNewDirectories(states, changed, check, add));
  if (found.moved_.empty()) return found;
  SILTFS_RETURN_IF_ERROR(ForEachChangedName(states, check, [&](const ChangedName& name) {
    const auto moved = name.before ? found.moved_.find(name.before->inode) : found.moved_.end();
    if (moved != found.moved_.end()) moved->second.old_names.push_back(name.place);
    return Status::Ok();
  }));
  return found;
}

const NamePlace* MovedInodes::TakeOldName(uint64_t inode) {
  const auto found = moved_.find(inode);
  if (found == moved_.end() || found->second.taken == found->second.pairs()) return nullptr;
  return &found->second.old_names[found->second.taken++];
}

bool MovedInodes::BecomesNewName(uint64_t inode, const NamePlace& old_name) const {
  const auto found = moved_.find(inode);
  if (found == moved_.end()) return false;
  const Names& names = found->second;
  const auto end = names.old_names.begin() + static_cast<std::ptrdiff_t>(names.pairs());
  return std::find(names.old_names.begin(), end, old_name) != end;
}

}  // namespace siltfs
