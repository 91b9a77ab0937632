#include "fs/versions/version_restore.h"

#include <limits>
#include <memory>
#include <utility>

#include "fs/records/schema.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
SnapshotBounds VersionRestore::Empty(LineageNumber lineage) {
  return {std::numeric_limits<SnapshotNumber>::max(), InLineage(lineage, 0), lineage};
}

VersionRestore::VersionRestore(const SnapshotBounds& snapshot,
                               std::function<void(const InodeRecord&)> on_dropped)
    : snapshot_(snapshot),
      on_dropped_(std::move(on_dropped)),
      from_(VersionListKey(snapshot.number, 0, {})) {}

Result<bool> VersionRestore::Next(const KvSnapshot& present, size_t most,
                                  std::vector<Mutation>& batch) {
  if (!versions_done_) {
    SILTFS_ASSIGN_OR_RETURN(const bool more, NextVersion(present, most, batch));
    versions_done_ = !more;
    return true;
  }
  return NextNewer(present, most, batch);
}

Result<bool> VersionRestore::NextVersion(const KvSnapshot& present, size_t most,
                                         std::vector<Mutation>& batch) {
  const auto versions = present.NewIteratorBelow(RangeOf(Table::kVersionList).end);
  size_t found = 0;
  for (versions->Seek(from_); versions->Valid() && found < most; versions->Next()) {
    const auto parts = ParseVersionListKey(versions->key());
    if (!parts) return Status(StatusCode::kCorruption, "the list of versions is malformed");
    // The snapshot shows an older version, or none. Or this snapshot belongs to another lineage.
    if (parts->born >= snapshot_.number || parts->lineage != snapshot_.lineage) {
      versions->Seek(VersionListKey(parts->snapshot + 1, 0, {}));
      if (!versions->Valid()) break;
      from_ = versions->key();
      // The loop moves on, so the entry found here is looked at in the next batch.
      return true;
    }
    SILTFS_ASSIGN_OR_RETURN(auto wanted, Wanted(present, parts->key, parts->snapshot));
    SILTFS_ASSIGN_OR_RETURN(const auto now, present.Get(parts->key));
    if (now != wanted) batch.push_back({std::string(parts->key), std::move(wanted)});
    ++found;
  }
  SILTFS_RETURN_IF_ERROR(versions->status());
  if (versions->Valid()) from_ = versions->key();
  return versions->Valid();
}

Result<std::optional<std::string>> VersionRestore::Wanted(const KvSnapshot& present,
                                                          std::string_view key,
                                                          SnapshotNumber kept_for) {
  const auto malformed = [] {
    return Status(StatusCode::kCorruption, "a version of a record is malformed");
  };
  uint64_t inode = 0;
  if (!IsVersionedKey(key, inode)) return malformed();
  SILTFS_ASSIGN_OR_RETURN(const auto value, present.Get(VersionKey(key, kept_for)));
  const auto version = value ? DecodeVersion(*value) : std::nullopt;
  if (!version) return malformed();
  if (!*version) return std::optional<std::string>();
  if (IsKeyOf(Table::kInode, key)) {
    SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(**version));
    if (record.links == 0) {
      on_dropped_(record);
      return std::optional<std::string>();
    }
  } else if (!IsKeyOf(Table::kQuota, key)) {
    SILTFS_ASSIGN_OR_RETURN(const bool kept, IsKept(present, inode));
    if (!kept) return std::optional<std::string>();
  }
  return std::optional(std::string(**version));
}

Result<bool> VersionRestore::IsKept(const KvSnapshot& present, uint64_t inode) {
  if (inode == inode_) return kept_;
  // The view shares its argument, which outlives it.
  const std::shared_ptr<const KvSnapshot> shared(&present, [](const KvSnapshot*) {});
  const auto view = MakeSnapshotView(shared, snapshot_);
  SILTFS_ASSIGN_OR_RETURN(const auto value, view->Get(InodeKey(WithoutLineage(inode))));
  inode_ = inode;
  kept_ = false;
  if (!value) return false;
  SILTFS_ASSIGN_OR_RETURN(const InodeRecord record, InodeRecord::Decode(*value));
  kept_ = record.links > 0;
  return kept_;
}

Result<bool> VersionRestore::NextNewer(const KvSnapshot& present, size_t most,
                                       std::vector<Mutation>& batch) {
  while (table_ < kTablesOfInodes.size()) {
    const KeyRange range = RangeOf(kTablesOfInodes[table_], snapshot_.inode_limit,
                                   InLineage(snapshot_.lineage + 1, 0));
    if (newer_.empty()) newer_ = range.begin;
    const auto keys = present.NewIteratorBelow(range.end);
    for (keys->Seek(newer_); keys->Valid() && batch.size() < most; keys->Next())
      batch.push_back({std::string(keys->key()), std::nullopt});
    SILTFS_RETURN_IF_ERROR(keys->status());
    if (keys->Valid()) {
      newer_ = keys->key();
      return true;
    }
    newer_.clear();
    ++table_;
  }
  return false;
}

Result<uint64_t> BytesOfRestore(const KvSnapshot& present, const SnapshotBounds& snapshot) {
  constexpr size_t kBatch = 1024;
  VersionRestore restore(snapshot, [](const InodeRecord&) {});
  uint64_t bytes = 0;
  for (bool more = true; more;) {
    std::vector<Mutation> batch;
    SILTFS_ASSIGN_OR_RETURN(more, restore.Next(present, kBatch, batch));
    for (const Mutation& mutation : batch) {
      // The present value becomes a version, which has its own key and one in the list of versions.
      SILTFS_ASSIGN_OR_RETURN(const auto now, present.Get(mutation.key));
      bytes += 3 * mutation.key.size();
      bytes += (mutation.value ? mutation.value->size() : 0) + (now ? now->size() : 0);
    }
  }
  return bytes;
}

}  // namespace siltfs
