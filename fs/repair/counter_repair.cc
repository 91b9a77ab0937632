#include "fs/repair/counter_repair.h"

#include <algorithm>

#include "fs/check/quota_count.h"
#include "fs/content/file_content.h"
#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "fs/records/table_cursor.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;

class CounterRepair {
 public:
  explicit CounterRepair(MetadataEdit& edit)
      : edit_(edit),
        inodes_(edit.snapshot(), Table::kInode),
        names_(edit.snapshot(), Table::kDirectoryEntry),
        cookies_(edit.snapshot(), Table::kDirectoryCookie),
        extents_(edit.snapshot(), Table::kOverlay),
        xattrs_(edit.snapshot(), Table::kXattr) {}

  Status Run() {
    SILTFS_RETURN_IF_ERROR(quotas_.Load(edit_.snapshot()));
    for (; inodes_.inode() != TableCursor::kEnd; inodes_.Next()) {
      if (!inodes_.rest().empty()) continue;
      const uint64_t number = inodes_.inode();
      highest_ = std::max(highest_, number);
      auto record = InodeRecord::Decode(inodes_.value());
      if (!record.ok()) {
        all_known_ = false;
        continue;
      }
      CountAttributes(number, *record);
      if (record->IsDirectory()) CountEntries(number, *record);
      if (record->IsRegular()) CountOverlay(number, *record);
      Sum(*record);
      quotas_.Add(number, *record);
      if (std::string value = record->Encode(); value != inodes_.value())
        edit_.Put(InodeKey(number), std::move(value));
    }
    for (const TableCursor* cursor : {&inodes_, &names_, &cookies_, &extents_, &xattrs_})
      SILTFS_RETURN_IF_ERROR(cursor->status());
    SILTFS_RETURN_IF_ERROR(RepairCounters());
    RepairQuotas();
    return RepairIds();
  }

 private:
  // Calls `each` for every key of this inode.
  template <typename Each>
  static void ForInode(TableCursor& cursor, uint64_t number, const Each& each) {
    while (cursor.inode() < number) cursor.Next();
    for (; cursor.inode() == number; cursor.Next()) each();
  }

  void CountAttributes(uint64_t number, InodeRecord& record) {
    record.xattrs = 0;
    ForInode(xattrs_, number, [&record] { ++record.xattrs; });
  }

  void CountEntries(uint64_t number, InodeRecord& record) {
    record.entries = 0;
    uint32_t subdirectories = 0;
    ForInode(names_, number, [&] {
      ++record.entries;
      const auto entry = NameEntry::Decode(names_.value());
      if (entry.ok() && entry->type == kDirectoryType) ++subdirectories;
    });
    if (record.links != 0) record.links = 2 + subdirectories;
    ForInode(cookies_, number, [&] {
      uint64_t cookie = 0;
      if (!cookies_.Number(cookie) || !CookieEntry::Decode(cookies_.value()).ok()) return;
      record.next_cookie = std::max(record.next_cookie, cookie + 1);
    });
  }

  void CountOverlay(uint64_t number, InodeRecord& record) {
    record.has_overlay = false;
    record.overlay_bytes = record.overlay_chunks = 0;
    ForInode(extents_, number, [&] {
      const auto extent = OverlayExtent::Decode(extents_.value());
      if (!extent.ok()) return;
      record.has_overlay = true;
      record.overlay_chunks += extent->slices.size();
      if (extent->kind != OverlayExtent::Kind::kHole) record.overlay_bytes += extent->length;
    });
  }

  void Sum(const InodeRecord& record) {
    const auto add = [this](Counter counter, uint64_t count) {
      sums_[static_cast<size_t>(counter)] += static_cast<int64_t>(count);
    };
    add(record.IsDirectory() ? Counter::kDirectories : Counter::kFiles, 1);
    if (!record.IsRegular()) return;
    add(Counter::kLogicalBytes, FileContent::AllocatedBytes(record));
    add(Counter::kChunkReferences, FileContent::ChunkReferences(record));
  }

  Status RepairCounters() {
    if (!all_known_) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(kCountersKey));
    Encoder counters;
    for (const int64_t sum : sums_) counters.I64(sum);
    if (!value || *value != counters.text()) edit_.Put(std::string(kCountersKey), counters.Take());
    return Status::Ok();
  }

  // A quota that must be removed has no limits, or no directory.
  void RepairQuotas() {
    for (QuotaFault& fault : quotas_.Faults(all_known_)) {
      if (fault.value) {
        edit_.Put(std::move(fault.key), *std::move(fault.value));
      } else {
        edit_.Remove(std::move(fault.key));
      }
    }
  }

  Status RepairIds() {
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(kIdRangesKey));
    auto ids = value ? IdRanges::Decode(*value)
                     : Result<IdRanges>(Status(StatusCode::kNotFound, "no id ranges"));
    if (!ids.ok() || highest_ < ids->inode_limit) return Status::Ok();
    ids->inode_limit = highest_ + 1;
    edit_.Put(std::string(kIdRangesKey), ids->Encode());
    return Status::Ok();
  }

  MetadataEdit& edit_;
  TableCursor inodes_;
  TableCursor names_;
  TableCursor cookies_;
  TableCursor extents_;
  TableCursor xattrs_;
  uint64_t highest_ = 0;
  bool all_known_ = true;
  Counters sums_{};
  QuotaCount quotas_;
};

}  // namespace

Status RepairCounters(MetadataEdit& edit) { return CounterRepair(edit).Run(); }

}  // namespace siltfs
