#include "fs/follow/kernel_changes.h"

#include <utility>

#include "fs/interface/snapshots.h"
#include "fs/versions/version_key.h"

namespace siltfs {

// The kernel knows the root directory without a lookup.
bool KernelChanges::IsKnown(uint64_t inode) const {
  return inode == kRootInode || lookups_.Of(inode) > 0;
}

void KernelChanges::Add(std::string_view key) {
  uint64_t inode = 0;
  if (!IsVersionedKey(key, inode) || !IsKnown(inode)) return;
  changes_.inodes.insert(inode);
  if (auto place = ParseDirectoryEntryKey(key)) changes_.names.push_back(*std::move(place));
}

Status KernelChanges::AddAll(const KvSnapshot& before) {
  const auto names = before.NewIterator();
  std::vector<uint64_t> known = lookups_.All();
  known.push_back(kRootInode);
  for (const uint64_t inode : known) {
    if (!changes_.inodes.insert(inode).second) continue;
    const auto range = RangeOf(Table::kDirectoryEntry, inode);
    for (names->Seek(range.begin); names->Valid() && names->key() < range.end; names->Next()) {
      if (auto place = ParseDirectoryEntryKey(names->key()))
        changes_.names.push_back(*std::move(place));
    }
    SILTFS_RETURN_IF_ERROR(names->status());
  }
  return Status::Ok();
}

void KernelChanges::AddSnapshots(const std::vector<std::string>& names) {
  changes_.inodes.insert(kSnapshotDirectory);
  for (const std::string& name : names) changes_.names.push_back({kSnapshotDirectory, name});
}

void KernelChanges::Changes::Tell(KernelCache& cache) const {
  for (const uint64_t inode : inodes) cache.ForgetInode(inode, /*listing=*/true);
  for (const NamePlace& place : names) cache.ForgetName(place.directory, place.name);
}

void KernelChanges::Tell(KernelCache& cache) {
  told_ = std::exchange(changes_, {});
  told_.Tell(cache);
}

void KernelChanges::Again(KernelCache& cache) { std::exchange(told_, {}).Tell(cache); }

void KernelChanges::Clear() {
  changes_ = {};
  told_ = {};
}

}  // namespace siltfs
