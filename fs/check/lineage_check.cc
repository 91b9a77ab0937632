#include "fs/check/lineage_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/check/inode_check.h"
#include "fs/open/store_layout.h"
#include "fs/records/lineage.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/snapshot_view.h"
#include "fs/versions/version_keeper.h"

namespace siltfs {
namespace {

class LineageCheck {
 public:
  LineageCheck(CheckContext& context, const KvSnapshot& metadata)
      : context_(context), metadata_(metadata) {}

  Status Run() {
    SILTFS_RETURN_IF_ERROR(ReadRecords());
    SILTFS_ASSIGN_OR_RETURN(snapshots_, ReadIntactSnapshots(metadata_));
    for (const NumberedSnapshot& snapshot : snapshots_) {
      const LineageNumber lineage = snapshot.record.lineage;
      if (lineage == kLiveLineage || lineages_.contains(lineage)) continue;
      SayRecord(fmt::format("lineage {} has snapshots, but no record", lineage));
      lineages_[lineage];
    }
    SILTFS_RETURN_IF_ERROR(FindStrays());
    for (const auto& [lineage, record] : lineages_) {
      const NumberedSnapshot* newest = NewestOf(lineage);
      if (newest == nullptr && !record.changed && !HasRemoved(lineage))
        SayRecord(fmt::format("lineage {} has no snapshots, and nothing will remove it", lineage));
      // Otherwise the head is between two states, until the transfer or the next mount goes on.
      if (newest != nullptr && !record.changed) SILTFS_RETURN_IF_ERROR(CheckHead(*newest));
    }
    return Status::Ok();
  }

 private:
  void SayRecord(std::string message) {
    context_.Report({.code = "lineage-record",
                     .path = MetadataPath(context_.store()),
                     .message = std::move(message)});
  }

  Status ReadRecords() {
    const KeyRange range = RangeOf(Table::kLineage);
    const auto iterator = metadata_.NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto number = ParseInodeKey(Table::kLineage, iterator->key());
      auto record = LineageRecord::Decode(iterator->value());
      if (!number || *number == kLiveLineage || *number >= kLineageLimit || !record.ok()) {
        SayRecord("the record of a lineage is malformed");
        if (number) lineages_[*number].changed = true;
        continue;
      }
      lineages_[*number] = *std::move(record);
    }
    return iterator->status();
  }

  const NumberedSnapshot* NewestOf(LineageNumber lineage) const {
    const NumberedSnapshot* newest = nullptr;
    for (const NumberedSnapshot& snapshot : snapshots_) {
      if (snapshot.record.lineage == lineage && !snapshot.record.removing) newest = &snapshot;
    }
    return newest;
  }

  bool HasRemoved(LineageNumber lineage) const {
    return std::ranges::any_of(snapshots_, [lineage](const NumberedSnapshot& snapshot) {
      return snapshot.record.lineage == lineage && snapshot.record.removing;
    });
  }

  // Reports records of lineages that do not exist.
  Status FindStrays() {
    SILTFS_ASSIGN_OR_RETURN(const auto with_records, FindLineages(metadata_));
    for (const LineageNumber lineage : with_records) {
      if (!lineages_.try_emplace(lineage, LineageRecord{.changed = true}).second) continue;
      SayRecord(fmt::format("there are records of lineage {}, which does not exist", lineage));
    }
    return Status::Ok();
  }

  Status CheckHead(const NumberedSnapshot& newest) {
    uint64_t count = 0;
    std::optional<Finding> first;
    context_.Divert([&](Finding finding) {
      if (count++ == 0) first = std::move(finding);
    });
    // The view shares its argument, which outlives it.
    const std::shared_ptr<const KvSnapshot> present(&metadata_, [](const KvSnapshot*) {});
    const auto view = MakeSnapshotView(present, BoundsOf(newest));
    Status checked = CheckReceivedInodes(context_, *view, newest.record);
    context_.Divert({});
    if (first) {
      const std::string more = count > 1 ? fmt::format(", and {} more faults", count - 1) : "";
      context_.Report(
          {.code = "received-snapshot",
           .path = MetadataPath(context_.store()),
           .message = fmt::format("the records of the received snapshot \"{}\" do not agree: {}{}; "
                                  "delete the snapshot and receive it again",
                                  newest.record.name, first->message, more)});
    }
    return checked;
  }

  CheckContext& context_;
  const KvSnapshot& metadata_;
  Lineages lineages_;
  std::vector<NumberedSnapshot> snapshots_;
};

}  // namespace

Status CheckLineages(CheckContext& context, const KvSnapshot& snapshot) {
  return LineageCheck(context, snapshot).Run();
}

}  // namespace siltfs
