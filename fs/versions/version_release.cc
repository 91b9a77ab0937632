#include "fs/versions/version_release.h"

#include <algorithm>
#include <memory>
#include <string>

namespace siltfs {

VersionRelease::VersionRelease(SnapshotNumber deleted, const std::vector<SnapshotBounds>& remaining,
                               SnapshotNumber newest)
    : at_(deleted) {
  const auto next = std::ranges::upper_bound(remaining, deleted, {}, &SnapshotBounds::number);
  if (next != remaining.begin()) before_ = std::prev(next)->number;
  end_ = next != remaining.end() ? next->number : newest + 1;
}

Result<bool> VersionRelease::Next(const KvSnapshot& present, size_t most,
                                  std::vector<Mutation>& batch) {
  const std::string end = VersionListKey(end_, 0, {});
  const std::unique_ptr<KvIterator> versions = present.NewIteratorBelow(end);
  size_t found = 0;
  versions->Seek(VersionListKey(at_, before_, {}));
  while (versions->Valid() && found < most) {
    const auto parts = ParseVersionListKey(versions->key());
    if (!parts) return Status(StatusCode::kCorruption, "the list of versions is malformed");
    at_ = parts->snapshot;
    if (parts->born < before_) {  // an older snapshot needs it
      versions->Seek(VersionListKey(at_, before_, {}));
      continue;
    }
    batch.push_back({std::string(versions->key()), std::nullopt});
    batch.push_back({VersionKey(parts->key, parts->snapshot), std::nullopt});
    ++found;
    versions->Next();
  }
  SILTFS_RETURN_IF_ERROR(versions->status());
  return versions->Valid();
}

}  // namespace siltfs
