#include "fs/check/version_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/meta/id_allocator.h"
#include "fs/open/store_layout.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/record_form.h"
#include "fs/versions/snapshot_view.h"
#include "fs/versions/version_key.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint64_t kStepsBetweenPolls = 1024;

// The two tables hold the same set of versions if their counts and the sums of the versions'
// checksums are equal.
struct VersionSet {
  uint64_t count = 0;
  uint64_t sum = 0;

  void Add(std::string_view version_key) {
    ++count;
    sum += Checksum(AsBytes(version_key));
  }
  bool operator==(const VersionSet&) const = default;
};

class VersionCheck {
 public:
  VersionCheck(CheckContext& context, const KvSnapshot& metadata)
      : context_(context), metadata_(metadata) {}

  Status Run() {
    SILTFS_RETURN_IF_ERROR(ReadNext());
    SILTFS_RETURN_IF_ERROR(CheckSnapshots());
    SILTFS_RETURN_IF_ERROR(CheckVersionTable());
    SILTFS_RETURN_IF_ERROR(CheckList());
    if (versions_ != listed_) SILTFS_RETURN_IF_ERROR(CompareTables());
    ReportVersions();
    return CheckRoots();
  }

 private:
  void SayRecord(std::string message) {
    context_.Report({.code = "snapshot-record",
                     .path = MetadataPath(context_.store()),
                     .message = std::move(message)});
  }
  // Counts a fault. The first fault of each kind is described.
  void Note(const char* fault, std::string_view key, uint64_t snapshot, uint64_t count = 1) {
    auto [found, first] = faults_.try_emplace(fault);
    found->second.count += count;
    if (!first) return;
    uint64_t inode = 0;
    if (IsVersionedKey(key, inode))
      found->second.first =
          fmt::format(", the first of inode {} as of snapshot {}", inode, snapshot);
  }

  Status ReadNext() {
    const auto next = ReadNextSnapshot(metadata_);
    if (next.status().Is(StatusCode::kCorruption)) {
      SayRecord("the number of the next snapshot is malformed");
      next_ = kSnapshotNumberLimit;
      return Status::Ok();
    }
    SILTFS_RETURN_IF_ERROR(next.status());
    next_ = std::min(*next, kSnapshotNumberLimit);
    if (*next > kSnapshotNumberLimit)
      SayRecord(fmt::format("the number {} of the next snapshot is impossible", *next));
    return Status::Ok();
  }

  Status CheckSnapshots() {
    const KeyRange range = RangeOf(Table::kSnapshot);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      if (iterator->key() == kNextSnapshotKey) continue;
      const auto number = ParseSnapshotKey(iterator->key());
      auto record = SnapshotRecord::Decode(iterator->value());
      if (!record.ok() || !number || *number == 0) {
        SayRecord(number ? fmt::format("the record of snapshot {} is malformed", *number)
                         : std::string("the key of a snapshot's record is malformed"));
        if (number) AddUnknown(*number);
        continue;
      }
      CheckSnapshot(*number, *record);
      snapshots_.push_back({*number, *std::move(record)});
    }
    return iterator->status();
  }

  // A snapshot with a malformed record still needs its versions.
  void AddUnknown(uint64_t number) {
    NumberedSnapshot& unknown = snapshots_.emplace_back();
    unknown.number = number;
    unknown.record.removing = true;
  }

  void CheckSnapshot(uint64_t number, const SnapshotRecord& record) {
    if (number >= next_)
      SayRecord(fmt::format("the number of snapshot {} was never allocated", number));
    const uint64_t highest = record.lineage != kLiveLineage ? kInodesPerLineage
                             : context_.records_known
                                 ? std::min(HighestInodeLimit(context_.ids), kInodesPerLineage)
                                 : kInodesPerLineage;
    uint64_t& lowest = highest_limits_[record.lineage];
    if (record.inode_limit <= kRootInode || record.inode_limit < lowest ||
        record.inode_limit > highest) {
      SayRecord(fmt::format("the limit {} of the inodes of snapshot {} is impossible",
                            record.inode_limit, number));
    } else {
      lowest = record.inode_limit;
    }
    if (record.removing) return;
    if (!IsName(record.name)) {
      SayRecord(fmt::format("snapshot {} has an impossible name", number));
    } else if (!names_.insert(record.name).second) {
      SayRecord(fmt::format("two snapshots have the name \"{}\"", record.name));
    }
  }

  Status CheckVersionTable() {
    const KeyRange range = RangeOf(Table::kVersion);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      SILTFS_RETURN_IF_ERROR(Poll());
      const auto parts = ParseVersionKey(iterator->key());
      if (!parts || parts->snapshot == 0 || !IsRecordKey(parts->key)) {
        Note("with a malformed key", parts ? parts->key : std::string(), 0);
        continue;
      }
      versions_.Add(iterator->key());
      const auto value = DecodeVersion(iterator->value());
      const bool intact = value && (*value ? IsRecord(parts->key, **value)
                                           : KeyWithoutLineage(parts->key) != InodeKey(kRootInode));
      if (!intact) Note("with a malformed value", parts->key, parts->snapshot);
      if (parts->snapshot >= next_)
        Note("of snapshots that were never made", parts->key, parts->snapshot);
    }
    return iterator->status();
  }

  Status CheckList() {
    const KeyRange range = RangeOf(Table::kVersionList);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      SILTFS_RETURN_IF_ERROR(Poll());
      const auto parts = ParseVersionListKey(iterator->key());
      if (!parts || parts->born >= parts->snapshot || !iterator->value().empty()) {
        Note("with a malformed entry in the list", parts ? parts->key : std::string_view(), 0);
        continue;
      }
      listed_.Add(VersionKey(parts->key, parts->snapshot));
      if (!IsNeeded(snapshots_, parts->lineage, parts->born, parts->snapshot))
        Note("that no snapshot needs", parts->key, parts->snapshot);
    }
    return iterator->status();
  }

  // Counts what is in only one of the tables.
  Status CompareTables() {
    uint64_t both = 0;
    const KeyRange range = RangeOf(Table::kVersionList);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      SILTFS_RETURN_IF_ERROR(Poll());
      const auto parts = ParseVersionListKey(iterator->key());
      if (!parts) continue;
      SILTFS_ASSIGN_OR_RETURN(const auto version,
                              metadata_.Get(VersionKey(parts->key, parts->snapshot)));
      if (version) ++both;
      if (!version) Note("in the list that do not exist", parts->key, parts->snapshot);
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    if (both < versions_.count) Note("not in the list", {}, 0, versions_.count - both);
    if (both > versions_.count) Note("twice in the list", {}, 0, both - versions_.count);
    if (faults_.empty()) Note("not in the list", {}, 0);
    return Status::Ok();
  }

  // One finding for all versions, because a repair makes the list again from all of them.
  void ReportVersions() {
    if (faults_.empty()) return;
    std::string message = "there are versions of records for snapshots";
    const char* separator = ": ";
    for (const auto& [fault, found] : faults_) {
      message +=
          fmt::format("{}{} {}{}", std::exchange(separator, "; "), found.count, fault, found.first);
    }
    context_.Report({.code = "snapshot-version",
                     .path = MetadataPath(context_.store()),
                     .message = std::move(message)});
  }

  Status CheckRoots() {
    // The view shares its argument, which outlives it.
    const std::shared_ptr<const KvSnapshot> present(&metadata_, [](const KvSnapshot*) {});
    for (const NumberedSnapshot& snapshot : snapshots_) {
      if (snapshot.record.removing) continue;
      SILTFS_RETURN_IF_ERROR(Poll());
      const auto view = MakeSnapshotView(present, BoundsOf(snapshot));
      const auto value = view->Get(InodeKey(kRootInode));
      if (value.status().Is(StatusCode::kCorruption)) continue;  // reported as a version
      SILTFS_RETURN_IF_ERROR(value.status());
      const bool is_directory = *value && IsDirectory(**value);
      // A limit that hides the root is reported above, and so is damage of the live root.
      if (is_directory || snapshot.record.inode_limit <= kRootInode) continue;
      SayRecord(fmt::format("the snapshot \"{}\" has no root directory", snapshot.record.name));
    }
    return Status::Ok();
  }
  static bool IsDirectory(const std::string& value) {
    const auto record = InodeRecord::Decode(value);
    return record.ok() && record->IsDirectory();
  }

  Status Poll() { return ++steps_ % kStepsBetweenPolls == 0 ? context_.Continue() : Status::Ok(); }

  struct Fault {
    uint64_t count = 0;
    std::string first;
  };

  CheckContext& context_;
  const KvSnapshot& metadata_;
  uint64_t next_ = 1;  // the number of the next snapshot
  std::map<LineageNumber, uint64_t> highest_limits_;
  std::vector<NumberedSnapshot> snapshots_;  // ascending
  std::set<std::string> names_;
  VersionSet versions_;
  VersionSet listed_;
  std::map<std::string, Fault> faults_;
  uint64_t steps_ = 0;
};

}  // namespace

uint64_t HighestInodeLimit(const IdRanges& ids) {
  constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();
  return std::min(ids.inode_limit, kHighest - IdAllocator::kInodeRange) + IdAllocator::kInodeRange;
}

bool IsNeeded(const std::vector<NumberedSnapshot>& snapshots, uint64_t lineage, uint64_t born,
              uint64_t kept_for) {
  auto snapshot = std::ranges::upper_bound(snapshots, born, {}, &NumberedSnapshot::number);
  for (; snapshot != snapshots.end() && snapshot->number <= kept_for; ++snapshot) {
    if (snapshot->record.lineage == lineage || snapshot->record.name.empty()) return true;
  }
  return false;
}

Status CheckVersions(CheckContext& context, const KvSnapshot& snapshot) {
  return VersionCheck(context, snapshot).Run();
}

}  // namespace siltfs
