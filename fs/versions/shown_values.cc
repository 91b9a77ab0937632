#include "fs/versions/shown_values.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fs/versions/version_key.h"

namespace siltfs {
namespace {

using Visit =
    std::function<Status(std::string_view key, std::string_view value, const ShownBy& shown)>;

class ShownValueWalk {
 public:
  ShownValueWalk(const KvSnapshot& metadata, std::string_view begin, std::string_view end,
                 const std::vector<SnapshotBounds>& snapshots, const Visit& visit)
      : end_of_versions_(FirstVersionKey(end)),
        present_(metadata.NewIteratorBelow(end)),
        versions_(metadata.NewIteratorBelow(end_of_versions_)),
        snapshots_(snapshots),
        visit_(visit) {
    present_->Seek(begin);
    versions_->Seek(FirstVersionKey(begin));
  }

  Status Run() {
    SILTFS_RETURN_IF_ERROR(LoadVersion());
    while (present_->Valid() || version_) {
      if (!version_ || (present_->Valid() && present_->key() < version_->key)) {
        SILTFS_RETURN_IF_ERROR(VisitPresent(0));
      } else {
        SILTFS_RETURN_IF_ERROR(VisitVersionedKey());
      }
    }
    SILTFS_RETURN_IF_ERROR(present_->status());
    return versions_->status();
  }

 private:
  // Reads the version at which the iterator stands.
  Status LoadVersion() {
    version_.reset();
    if (!versions_->Valid()) return versions_->status();
    version_ = ParseVersionKey(versions_->key());
    const auto value = DecodeVersion(versions_->value());
    if (!version_ || !value) return {StatusCode::kCorruption, "a version of a record is malformed"};
    value_.reset();
    if (*value) value_.emplace(**value);
    return Status::Ok();
  }

  // Visits the versions of the next key that has some, and its present value.
  Status VisitVersionedKey() {
    if (present_->Valid() && present_->key() == version_->key)
      SILTFS_RETURN_IF_ERROR(VisitPresent(version_->snapshot));
    const std::string key = version_->key;
    while (version_ && version_->key == key) {
      const SnapshotNumber kept_for = version_->snapshot;
      const std::optional<std::string> value = std::move(value_);
      versions_->Next();
      SILTFS_RETURN_IF_ERROR(LoadVersion());
      const SnapshotNumber older = version_ && version_->key == key ? version_->snapshot : 0;
      if (value) SILTFS_RETURN_IF_ERROR(VisitShown(key, *value, older, EndPlace(kept_for)));
    }
    return Status::Ok();
  }

  // `older`: the newest snapshot that shows an older value, 0 if there is none.
  Status VisitPresent(SnapshotNumber older) {
    SILTFS_RETURN_IF_ERROR(
        VisitShown(present_->key(), present_->value(), older, snapshots_.size() + 1));
    present_->Next();
    return Status::Ok();
  }

  Status VisitShown(std::string_view key, std::string_view value, SnapshotNumber older,
                    size_t end_place) {
    uint64_t inode = 0;
    if (!IsVersionedKey(key, inode))
      return {StatusCode::kCorruption, "the key of a record is malformed"};
    // Limits rise with the numbers.
    const auto has_inode =
        std::ranges::upper_bound(snapshots_, inode, {}, &SnapshotBounds::inode_limit);
    const size_t first =
        std::max<size_t>(EndPlace(older), static_cast<size_t>(has_inode - snapshots_.begin()));
    if (first >= end_place) return Status::Ok();
    return visit_(key, value, {first, end_place - 1});
  }

  // The place of the first snapshot that is newer than `number`.
  size_t EndPlace(SnapshotNumber number) const {
    const auto newer = std::ranges::upper_bound(snapshots_, number, {}, &SnapshotBounds::number);
    return static_cast<size_t>(newer - snapshots_.begin());
  }

  const std::string end_of_versions_;
  const std::unique_ptr<KvIterator> present_;
  const std::unique_ptr<KvIterator> versions_;
  const std::vector<SnapshotBounds>& snapshots_;
  const Visit& visit_;
  std::optional<VersionKeyParts> version_;  // at which versions_ stands; empty at the end
  std::optional<std::string> value_;        // of version_; empty: the key was absent
};

}  // namespace

Status ForEachShownValue(const KvSnapshot& metadata, std::string_view begin, std::string_view end,
                         const std::vector<SnapshotBounds>& snapshots, const Visit& visit) {
  return ShownValueWalk(metadata, begin, end, snapshots, visit).Run();
}

}  // namespace siltfs
