#include "fs/repair/version_repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fs/check/version_check.h"
#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/record_form.h"
#include "fs/versions/version_keeper.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kKeysPerWrite = 8192;
constexpr size_t kBytesPerWrite = size_t{1} << 20;
constexpr size_t kMostLost = 10'000;

class Batch {
 public:
  Batch(KvStore& kv, uint64_t& changes) : kv_(kv), changes_(changes) {}

  Status Put(std::string key, std::string value) { return Add({std::move(key), std::move(value)}); }
  Status Remove(std::string_view key) { return Add({std::string(key), std::nullopt}); }
  Status Flush() {
    if (mutations_.empty()) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(kv_.Write(mutations_));
    changes_ += mutations_.size();
    mutations_.clear();
    bytes_ = 0;
    return Status::Ok();
  }

 private:
  Status Add(Mutation mutation) {
    bytes_ += mutation.key.size();
    mutations_.push_back(std::move(mutation));
    return mutations_.size() < kKeysPerWrite && bytes_ < kBytesPerWrite ? Status::Ok() : Flush();
  }

  KvStore& kv_;
  uint64_t& changes_;
  std::vector<Mutation> mutations_;
  size_t bytes_ = 0;
};

// Repairs the table of snapshots. All its records are in memory.
class SnapshotRepair {
 public:
  SnapshotRepair(KvStore& kv, int64_t now, uint64_t& changes)
      : metadata_(kv.Snapshot()), now_(now), batch_(kv, changes) {}

  Status Run() {
    SILTFS_RETURN_IF_ERROR(ReadStore());
    SILTFS_ASSIGN_OR_RETURN(uint64_t next, HighestVersion());
    const KeyRange range = RangeOf(Table::kSnapshot);
    const auto iterator = metadata_->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      if (iterator->key() == kNextSnapshotKey) continue;
      const auto number = ParseSnapshotKey(iterator->key());
      if (!number || *number == 0 || *number >= kSnapshotNumberLimit) {
        SILTFS_RETURN_IF_ERROR(batch_.Remove(iterator->key()));
        continue;
      }
      next = std::max(next, *number + 1);
      SILTFS_RETURN_IF_ERROR(RepairRecord(*number, iterator->value()));
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    SILTFS_RETURN_IF_ERROR(RepairNext(next));
    return batch_.Flush();
  }

 private:
  Status ReadStore() {
    SILTFS_ASSIGN_OR_RETURN(const auto ids, metadata_->Get(kIdRangesKey));
    const auto ranges = ids ? IdRanges::Decode(*ids)
                            : Result<IdRanges>(Status(StatusCode::kNotFound, "no id ranges"));
    if (ranges.ok()) highest_limit_ = std::min(HighestInodeLimit(*ranges), kInodesPerLineage);
    SILTFS_ASSIGN_OR_RETURN(const auto commit, metadata_->Get(kCommitNumberKey));
    if (commit) last_commit_ = Decoder(AsBytes(*commit)).U64();
    // Names of whole records have priority over names that the repair makes.
    SILTFS_ASSIGN_OR_RETURN(const auto intact, ReadIntactSnapshots(*metadata_));
    for (const NumberedSnapshot& snapshot : intact) taken_.insert(snapshot.record.name);
    return Status::Ok();
  }

  // One more than the highest number of a snapshot that has versions.
  Result<uint64_t> HighestVersion() const {
    const KeyRange range = RangeOf(Table::kVersion);
    const auto iterator = metadata_->NewIteratorBelow(range.end);
    uint64_t next = 1;
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto parts = ParseVersionKey(iterator->key());
      if (parts && parts->snapshot < kSnapshotNumberLimit)
        next = std::max(next, parts->snapshot + 1);
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return next;
  }

  Status RepairRecord(uint64_t number, std::string_view value) {
    auto decoded = SnapshotRecord::Decode(value);
    SnapshotRecord record;
    if (decoded.ok()) {
      record = std::move(decoded).value();
    } else {
      record.created = now_;
      record.commit = last_commit_;
      record.inode_limit = highest_limit_;
    }
    const uint64_t highest =
        record.lineage == kLiveLineage ? highest_limit_ : uint64_t{kInodesPerLineage};
    uint64_t& lowest = lowest_limits_.try_emplace(record.lineage, kRootInode + 1).first->second;
    record.inode_limit = std::clamp(record.inode_limit, lowest, highest);
    lowest = record.inode_limit;
    if (!record.removing) record.name = NameOf(number, std::move(record.name));
    std::string now = record.Encode();
    return now == value ? Status::Ok() : batch_.Put(SnapshotKey(number), std::move(now));
  }

  std::string NameOf(uint64_t number, std::string name) {
    if (IsName(name) && given_.insert(name).second) return name;
    std::string base = IsName(name) ? fmt::format("{}-{}", name.substr(0, 200), number)
                                    : fmt::format("recovered-{}", number);
    std::string made = base;
    for (int i = 2; taken_.contains(made) || !given_.insert(made).second; ++i)
      made = fmt::format("{}-{}", base, i);
    return made;
  }

  Status RepairNext(uint64_t needed) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, metadata_->Get(kNextSnapshotKey));
    const auto next = ReadNextSnapshot(*metadata_);
    const bool usable = next.ok() && *next >= needed && *next <= kSnapshotNumberLimit;
    if (usable || (!value && needed == 1)) return Status::Ok();
    return batch_.Put(std::string(kNextSnapshotKey), EncodeNextSnapshot(needed));
  }

  const std::shared_ptr<const KvSnapshot> metadata_;
  const int64_t now_;
  Batch batch_;
  uint64_t highest_limit_ = kInodesPerLineage;
  std::map<LineageNumber, uint64_t> lowest_limits_;
  uint64_t last_commit_ = 0;
  std::set<std::string> taken_;
  std::set<std::string> given_;
};

// Repairs the versions, and makes their list again. Walks through the versions of each key from the
// newest one to the oldest one, so the next version shows where the one before it begins to serve.
class VersionRepair {
 public:
  VersionRepair(KvStore& kv, VersionRepairResult& result)
      : metadata_(kv.Snapshot()), result_(result), batch_(kv, result.changes) {}

  Status Run() {
    SILTFS_ASSIGN_OR_RETURN(snapshots_, ReadIntactSnapshots(*metadata_));
    SILTFS_RETURN_IF_ERROR(RemoveList());
    const KeyRange range = RangeOf(Table::kVersion);
    const auto iterator = metadata_->NewIteratorBelow(range.end);
    std::optional<VersionKeyParts> newer;
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      auto parts = ParseVersionKey(iterator->key());
      if (!IsIntact(parts, iterator->value())) {
        NoteLost(parts);
        SILTFS_RETURN_IF_ERROR(batch_.Remove(iterator->key()));
        continue;
      }
      const uint64_t older = newer && newer->key == parts->key ? parts->snapshot : 0;
      if (newer) SILTFS_RETURN_IF_ERROR(List(*newer, older));
      newer = std::move(parts);
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    if (newer) SILTFS_RETURN_IF_ERROR(List(*newer, 0));
    return batch_.Flush();
  }

 private:
  Status RemoveList() {
    const KeyRange range = RangeOf(Table::kVersionList);
    const auto iterator = metadata_->NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next())
      SILTFS_RETURN_IF_ERROR(batch_.Remove(iterator->key()));
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return batch_.Flush();
  }

  static bool IsIntact(const std::optional<VersionKeyParts>& parts, std::string_view version) {
    if (!parts || parts->snapshot == 0 || parts->snapshot >= kSnapshotNumberLimit) return false;
    const auto value = DecodeVersion(version);
    if (!value || !IsRecordKey(parts->key)) return false;
    return *value ? IsRecord(parts->key, **value)
                  : KeyWithoutLineage(parts->key) != InodeKey(kRootInode);
  }

  void NoteLost(const std::optional<VersionKeyParts>& parts) {
    uint64_t inode = 0;
    if (!parts || !IsVersionedKey(parts->key, inode) || result_.lost.size() >= kMostLost) return;
    result_.lost.push_back({inode, parts->snapshot});
  }

  // The version serves the snapshots after `older`, except for those that do not have the inode.
  Status List(const VersionKeyParts& version, uint64_t older) {
    uint64_t inode = 0;
    IsVersionedKey(version.key, inode);
    uint64_t born = older;
    for (const NumberedSnapshot& snapshot : snapshots_) {
      if (snapshot.record.lineage != LineageOf(inode)) continue;
      if (snapshot.number >= version.snapshot || BoundsOf(snapshot).inode_limit > inode) break;
      born = std::max(born, snapshot.number);
    }
    if (!IsNeeded(snapshots_, LineageOf(inode), born, version.snapshot))
      return batch_.Remove(VersionKey(version.key, version.snapshot));
    return batch_.Put(VersionListKey(version.snapshot, born, version.key), std::string());
  }

  const std::shared_ptr<const KvSnapshot> metadata_;
  VersionRepairResult& result_;
  Batch batch_;
  std::vector<NumberedSnapshot> snapshots_;  // ascending
};

}  // namespace

Result<VersionRepairResult> RepairVersions(KvStore& kv, int64_t now) {
  VersionRepairResult result;
  SILTFS_RETURN_IF_ERROR(SnapshotRepair(kv, now, result.changes).Run());
  SILTFS_RETURN_IF_ERROR(VersionRepair(kv, result).Run());
  return result;
}

Result<VersionRepairResult> RelistVersions(KvStore& kv) {
  VersionRepairResult result;
  SILTFS_RETURN_IF_ERROR(VersionRepair(kv, result).Run());
  return result;
}

}  // namespace siltfs
