#include "fs/versions/version_release.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fs/records/inode_record.h"
#include "fs/records/schema.h"

namespace siltfs {

namespace {

uint64_t ContentBytes(const std::optional<std::string>& version) {
  const auto value = version ? DecodeVersion(*version) : std::nullopt;
  if (!value || !*value) return 0;
  const auto record = InodeRecord::Decode(**value);
  return record.ok() && record->IsRegular() ? record->recipe.size() - record->recipe.hole_bytes()
                                            : 0;
}

}  // namespace

VersionRelease::VersionRelease(SnapshotNumber deleted, LineageNumber lineage,
                               const std::vector<SnapshotBounds>& remaining, SnapshotNumber newest)
    : lineage_(lineage), at_(deleted) {
  const auto next = std::ranges::upper_bound(remaining, deleted, {}, &SnapshotBounds::number);
  if (next != remaining.begin()) before_ = std::prev(next)->number;
  end_ = next != remaining.end() ? next->number : newest + 1;
}

Result<bool> VersionRelease::Next(const KvSnapshot& present, size_t most,
                                  std::vector<Mutation>& batch) {
  const std::string end = VersionListKey(end_, 0, {});
  const std::unique_ptr<KvIterator> versions = present.NewIteratorBelow(end);
  size_t found = 0;
  // Seeking the first key again would pass all keys that earlier batches have removed.
  if (from_.empty()) from_ = VersionListKey(at_, before_, {});
  versions->Seek(from_);
  while (versions->Valid() && found < most) {
    const auto parts = ParseVersionListKey(versions->key());
    if (!parts) return Status(StatusCode::kCorruption, "the list of versions is malformed");
    at_ = parts->snapshot;
    if (parts->lineage != lineage_) {  // as all versions that were kept for this snapshot
      versions->Seek(VersionListKey(at_ + 1, before_, {}));
      continue;
    }
    if (parts->born < before_) {  // an older snapshot needs it
      versions->Seek(VersionListKey(at_, before_, {}));
      continue;
    }
    const std::string version = VersionKey(parts->key, parts->snapshot);
    if (IsKeyOf(Table::kInode, parts->key)) {
      SILTFS_ASSIGN_OR_RETURN(const auto value, present.Get(version));
      content_bytes_ += ContentBytes(value);
    }
    batch.push_back({std::string(versions->key()), std::nullopt});
    batch.push_back({version, std::nullopt});
    ++found;
    versions->Next();
  }
  SILTFS_RETURN_IF_ERROR(versions->status());
  if (versions->Valid()) from_ = versions->key();
  return versions->Valid();
}

}  // namespace siltfs
