#include "fs/repair/version_edit.h"

#include <limits>
#include <memory>
#include <utility>

#include "fs/versions/snapshot_view.h"

namespace siltfs {

Result<std::optional<std::string>> ReadVersion(const KvSnapshot& metadata, const std::string& key,
                                               const FileVersion& file) {
  if (file.snapshot == 0) return metadata.Get(key);
  SILTFS_ASSIGN_OR_RETURN(const auto version, metadata.Get(VersionKey(key, file.snapshot)));
  const auto value = version ? DecodeVersion(*version) : std::nullopt;
  if (!value || !*value) return std::optional<std::string>();
  return std::optional(std::string(**value));
}

void VersionEdit::Put(const std::string& key, SnapshotNumber snapshot, std::string_view value) {
  changes_[VersionKey(key, snapshot)] = EncodeVersion(std::string(value));
}

Status VersionEdit::PutPart(const std::string& key, const std::string& whole,
                            SnapshotNumber snapshot, std::string_view value) {
  Put(key, snapshot, value);
  if (key == whole) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const SnapshotNumber older, NextOlder(whole, snapshot));
  if (older == 0) return Status::Ok();
  const std::string version = VersionKey(key, older);
  SILTFS_ASSIGN_OR_RETURN(const auto known, metadata_.Get(version));
  if (known || changes_.contains(version)) return Status::Ok();
  // The view shares its argument, which outlives it.
  const std::shared_ptr<const KvSnapshot> present(&metadata_, [](const KvSnapshot*) {});
  const auto view = MakeSnapshotView(present, {older, std::numeric_limits<uint64_t>::max()});
  SILTFS_ASSIGN_OR_RETURN(const auto shown, view->Get(key));
  changes_.emplace(version, EncodeVersion(shown));
  return Status::Ok();
}

Result<SnapshotNumber> VersionEdit::NextOlder(const std::string& key,
                                              SnapshotNumber snapshot) const {
  const auto versions = metadata_.NewIteratorBelow(EndOfVersionKeys(key));
  versions->Seek(VersionKey(key, snapshot - 1));
  SILTFS_RETURN_IF_ERROR(versions->status());
  if (!versions->Valid()) return SnapshotNumber{0};
  const auto parts = ParseVersionKey(versions->key());
  return parts && parts->key == key ? parts->snapshot : 0;
}

std::vector<Mutation> VersionEdit::Take() {
  std::vector<Mutation> mutations;
  for (auto& [key, value] : changes_) mutations.push_back({key, std::move(value)});
  changes_.clear();
  return mutations;
}

}  // namespace siltfs
