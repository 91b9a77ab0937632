#include "fs/versions/snapshot_view.h"

#include <optional>
#include <string>
#include <utility>

#include "fs/records/schema.h"
#include "fs/versions/lineage_view.h"

namespace siltfs {
namespace {

Status Malformed() { return {StatusCode::kCorruption, "a version of a record is malformed"}; }

bool IsHidden(std::string_view key) {
  if (key.empty()) return false;
  const auto table = static_cast<Table>(key[0]);
  return table == Table::kVersion || table == Table::kVersionList || table == Table::kOrphan;
}

// Whether the key is of the snapshot's lineage, and of an inode that the snapshot shows.
bool IsShownInode(uint64_t inode, const SnapshotBounds& snapshot) {
  return inode < snapshot.inode_limit && inode >= InLineage(snapshot.lineage, 0);
}

// Walks the versions of all keys, and for each key finds the one that a snapshot shows.
class VersionCursor {
 public:
  // Walks the versions below `end`.
  VersionCursor(const KvSnapshot& present, std::string_view end, SnapshotNumber snapshot)
      : present_(present), versions_(present.NewIteratorBelow(end)), snapshot_(snapshot) {}

  // Moves to the first key from this one on. It is known after Find.
  void Seek(std::string_view key) {
    versions_->Seek(FirstVersionKey(key));
    Forget();
  }
  void Next() { Forget(); }
  // Finds the next key that has a version for the snapshot, if it is not above `limit`; nullopt:
  // none is. There may be many keys without such a version, so a caller that has a record with the
  // key `limit` must not make the cursor pass those behind it.
  void Find(std::optional<std::string_view> limit) {
    while (!valid_ && versions_->Valid() && failure_.ok()) {
      if (!at_key_) {
        auto parts = ParseVersionKey(versions_->key());
        if (!parts) return Fail();
        key_ = std::move(parts->key);
        at_key_ = true;
      }
      if (limit && key_ > *limit) return;
      if (!TakeVersions()) return;
    }
    if (!versions_->status().ok()) valid_ = false;
  }
  // Whether Find has found a key.
  bool Valid() const { return valid_; }
  const std::string& key() const { return key_; }
  const std::optional<std::string>& value() const { return value_; }
  Status status() const { return failure_.ok() ? versions_->status() : failure_; }

 private:
  void Forget() { valid_ = at_key_ = false; }
  // Takes the version of key_ that the snapshot shows, if there is one, and moves the iterator to
  // the first version of the next key. The iterator stands at the first version of key_. False
  // after a failure.
  bool TakeVersions() {
    at_key_ = false;
    for (size_t passed = 0; versions_->Valid(); ++passed) {
      const auto parts = ParseVersionKey(versions_->key());
      if (!parts) {
        Fail();
        return false;
      }
      if (parts->key != key_) return true;
      if (passed == kMostPassed) return JumpToOldest();
      // The oldest version that is not older than the snapshot.
      if (parts->snapshot >= snapshot_ && !Take(versions_->value())) {
        Fail();
        return false;
      }
      versions_->Next();
    }
    return true;
  }
  bool Take(std::string_view encoded) {
    const auto version = DecodeVersion(encoded);
    if (!version) return false;
    valid_ = true;
    value_.reset();
    if (*version) value_.emplace(**version);
    return true;
  }
  // Takes the oldest version of the key that is not older than the snapshot, and moves the iterator
  // to the first version of the next key. The key may have as many versions as there are snapshots.
  bool JumpToOldest() {
    std::string end = VersionKey(key_, snapshot_);
    end.push_back('\0');
    auto oldest = present_.LastIn(FirstVersionKey(key_), end);
    if (!oldest.ok()) {
      failure_ = std::move(oldest).status();
      valid_ = false;
      return false;
    }
    const auto parts = *oldest ? ParseVersionKey((*oldest)->key) : std::nullopt;
    if (parts && parts->key == key_ && !Take((*oldest)->value)) {
      Fail();
      return false;
    }
    versions_->Seek(EndOfVersionKeys(key_));
    return true;
  }
  void Fail() {
    valid_ = false;
    failure_ = Malformed();
  }

  // So many versions of a key are passed one by one. A jump costs as much as passing some more.
  static constexpr size_t kMostPassed = 8;

  const KvSnapshot& present_;
  const std::unique_ptr<KvIterator> versions_;
  const SnapshotNumber snapshot_;
  bool valid_ = false;
  bool at_key_ = false;  // the iterator stands at the first version of key_
  std::string key_;
  std::optional<std::string> value_;  // empty: the key was absent
  Status failure_;
};

class ViewIterator final : public KvIterator {
 public:
  ViewIterator(const KvSnapshot& present, const SnapshotBounds& snapshot, std::string_view end)
      : snapshot_(snapshot),
        end_(end),
        present_(present.NewIteratorBelow(end)),
        versions_(present, end.empty() ? EndOfVersionKeys() : FirstVersionKey(end),
                  snapshot.number) {}

  void Seek(std::string_view key) override {
    present_->Seek(key);
    versions_.Seek(key);
    Settle();
  }
  void Next() override {
    if (!from_version_) {
      present_->Next();
    } else {
      if (present_->Valid() && present_->key() == versions_.key()) present_->Next();
      versions_.Next();
    }
    Settle();
  }
  bool Valid() const override { return valid_; }
  std::string_view key() const override {
    return from_version_ ? versions_.key() : present_->key();
  }
  std::string_view value() const override {
    return from_version_ ? std::string_view(*versions_.value()) : present_->value();
  }
  Status status() const override {
    const Status status = versions_.status();
    return status.ok() ? present_->status() : status;
  }

 private:
  bool IsLater(std::string_view key) const {
    uint64_t inode = 0;
    return IsHidden(key) || (IsVersionedKey(key, inode) && !IsShownInode(inode, snapshot_));
  }
  void FindVersion() {
    versions_.Find(present_->Valid() ? std::optional(present_->key()) : std::nullopt);
  }
  // Moves to the next key that the snapshot shows.
  void Settle() {
    for (;;) {
      valid_ = false;
      if (!status().ok()) return;
      while (present_->Valid() && IsLater(present_->key())) present_->Next();
      FindVersion();
      // Newer snapshots may show these inodes.
      while (versions_.Valid() && IsLater(versions_.key())) {
        versions_.Next();
        FindVersion();
      }
      if (!status().ok()) return;
      from_version_ = versions_.Valid();
      if (!from_version_) {
        valid_ = present_->Valid();
        return;
      }
      valid_ = versions_.value().has_value();
      if (valid_) return;
      if (present_->Valid() && present_->key() == versions_.key()) present_->Next();
      versions_.Next();
    }
  }

  const SnapshotBounds snapshot_;
  const std::string end_;
  const std::unique_ptr<KvIterator> present_;
  VersionCursor versions_;
  bool valid_ = false;
  bool from_version_ = false;
};

class SnapshotView final : public KvSnapshot {
 public:
  SnapshotView(std::shared_ptr<const KvSnapshot> present, const SnapshotBounds& snapshot)
      : present_(std::move(present)), snapshot_(snapshot) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    uint64_t inode = 0;
    if (IsHidden(key)) return std::optional<std::string>();
    if (!IsVersionedKey(key, inode)) return present_->Get(key);
    if (!IsShownInode(inode, snapshot_)) return std::optional<std::string>();
    // Not beyond this key: the versions of the next keys may all be for older snapshots, and the
    // cursor would pass them one by one.
    VersionCursor versions(*present_, EndOfVersionKeys(key), snapshot_.number);
    versions.Seek(key);
    versions.Find(std::nullopt);
    SILTFS_RETURN_IF_ERROR(versions.status());
    if (versions.Valid() && versions.key() == key) return versions.value();
    return present_->Get(key);
  }
  std::unique_ptr<KvIterator> NewIteratorBelow(std::string_view end) const override {
    return std::make_unique<ViewIterator>(*present_, snapshot_, end);
  }

 private:
  const std::shared_ptr<const KvSnapshot> present_;
  const SnapshotBounds snapshot_;
};

}  // namespace

std::shared_ptr<const KvSnapshot> MakeSnapshotView(std::shared_ptr<const KvSnapshot> present,
                                                   const SnapshotBounds& snapshot) {
  std::shared_ptr<const KvSnapshot> view =
      std::make_shared<SnapshotView>(std::move(present), snapshot);
  if (snapshot.lineage == kLiveLineage) return view;
  return MakeLineageView(std::move(view), snapshot.lineage);
}

}  // namespace siltfs
