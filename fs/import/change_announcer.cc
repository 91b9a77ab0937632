#include "fs/import/change_announcer.h"

namespace siltfs {

void ChangeAnnouncer::NameChanged(InodeNumber parent, std::string_view name, InodeNumber replaced) {
  if (replaced != 0) AttributesChanged(replaced);
  if (!entries_.MayBeCached(parent)) return;
  cache_.ForgetName(parent, std::string(name));
  directories_.insert(parent);
}

void ChangeAnnouncer::AttributesChanged(InodeNumber inode) {
  if (entries_.MayBeCached(inode)) cache_.ForgetInode(inode, /*listing=*/false);
}

void ChangeAnnouncer::Flush() {
  for (const InodeNumber directory : directories_) cache_.ForgetInode(directory, /*listing=*/true);
  directories_.clear();
}

}  // namespace siltfs
