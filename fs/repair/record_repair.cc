#include "fs/repair/record_repair.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/table_cursor.h"
#include "fs/repair/overlay_repair.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;

bool IsType(uint32_t type) {
  constexpr std::array<uint32_t, 7> kTypes = {0010000, 0020000, 0040000, 0060000,
                                              0100000, 0120000, 0140000};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

class RecordRepair {
 public:
  RecordRepair(MetadataEdit& edit, const RecordRepairOptions& options, std::vector<uint64_t>& lost)
      : edit_(edit),
        options_(options),
        lost_(lost),
        inodes_(edit.snapshot(), Table::kInode),
        names_(edit.snapshot(), Table::kDirectoryEntry),
        cookies_(edit.snapshot(), Table::kDirectoryCookie),
        extents_(edit.snapshot(), Table::kOverlay),
        orphans_(edit.snapshot(), Table::kOrphan),
        xattrs_(edit.snapshot(), Table::kXattr) {}

  Status Run() {
    const std::array<TableCursor*, 6> all = {&inodes_,  &names_,   &cookies_,
                                             &extents_, &orphans_, &xattrs_};
    bool root = false;
    while (true) {
      uint64_t number = TableCursor::kEnd;
      for (const TableCursor* cursor : all) number = std::min(number, cursor->inode());
      if (number == TableCursor::kEnd) break;
      root |= number == kRootInode;
      SILTFS_RETURN_IF_ERROR(Repair(number));
    }
    for (const TableCursor* cursor : all) SILTFS_RETURN_IF_ERROR(cursor->status());
    if (!root) MakeDirectory(kRootInode);
    return RemoveUnknownKeys();
  }

 private:
  // Returns this inode's keys and moves the cursor past them.
  static std::vector<std::string> KeysOf(TableCursor& cursor, Table table, uint64_t number) {
    std::vector<std::string> keys;
    for (; cursor.inode() == number; cursor.Next())
      keys.push_back(RangeOf(table, number).begin + std::string(cursor.rest()));
    return keys;
  }
  void RemoveAll(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) edit_.Remove(key);
  }

  Status Repair(uint64_t number) {
    std::optional<InodeRecord> record;
    bool malformed = false;
    for (; inodes_.inode() == number; inodes_.Next()) {
      if (!inodes_.rest().empty()) {
        edit_.Remove(InodeKey(number) + std::string(inodes_.rest()));
        continue;
      }
      auto decoded = InodeRecord::Decode(inodes_.value());
      if (decoded.ok() && IsType(decoded->type())) {
        record = std::move(decoded).value();
      } else {
        decoded.status().IgnoreError("the record is removed");
        malformed = true;
      }
    }
    // The entries of the inode, if it is a directory. RepairNames and RepairLinks repair the names
    // that refer to the inode.
    auto entries = KeysOf(names_, Table::kDirectoryEntry, number);
    const auto cookies = KeysOf(cookies_, Table::kDirectoryCookie, number);
    entries.insert(entries.end(), cookies.begin(), cookies.end());
    const bool has_overlay = !KeysOf(extents_, Table::kOverlay, number).empty();
    auto marks = KeysOf(orphans_, Table::kOrphan, number);
    const auto xattrs = KeysOf(xattrs_, Table::kXattr, number);

    const bool is_root = number == kRootInode;
    const bool usable = record && (!is_root || record->IsDirectory());
    if (!usable && (is_root || !entries.empty())) {
      MakeDirectory(number);
      RemoveAll(marks);
      return has_overlay ? RemoveOverlay(edit_, number) : Status::Ok();
    }
    if (!usable) {
      if (malformed) lost_.push_back(number);
      edit_.Remove(InodeKey(number));
      marks.insert(marks.end(), xattrs.begin(), xattrs.end());
      RemoveAll(marks);
      return has_overlay ? RemoveOverlay(edit_, number) : Status::Ok();
    }
    return RepairContent(number, *record, entries, has_overlay);
  }

  Status RepairContent(uint64_t number, InodeRecord& record,
                       const std::vector<std::string>& entries, bool has_overlay) {
    if (number == kRootInode && (record.parent != kRootInode || record.links == 0)) {
      record.parent = kRootInode;
      record.links = std::max(record.links, 2u);
      edit_.Put(InodeKey(number), record.Encode());
    }
    if (!record.IsDirectory()) RemoveAll(entries);
    if (!has_overlay) return Status::Ok();
    return record.IsRegular() ? RepairOverlay(edit_, number, record.size)
                              : RemoveOverlay(edit_, number);
  }

  // Makes the inode a directory. A directory other than the root is private to its owner, because
  // its former mode is unknown. RepairCounters sets the counts.
  void MakeDirectory(uint64_t number) {
    InodeRecord record;
    record.mode = kDirectoryType | (number == kRootInode ? 0755 : 0700);
    record.links = 2;
    record.uid = options_.owner.uid;
    record.gid = options_.owner.gid;
    record.parent = kRootInode;
    record.next_cookie = kFirstCookie;
    record.atime = record.mtime = record.ctime = record.btime = options_.now;
    edit_.Put(InodeKey(number), record.Encode());
  }

  Status RemoveUnknownKeys() {
    const auto iterator = edit_.snapshot().NewIterator();
    for (iterator->Seek(""); iterator->Valid();) {
      const std::string key(iterator->key());
      switch (key.empty() ? Table{} : static_cast<Table>(key[0])) {
        case Table::kCommitNumber:
        case Table::kCounters:
        case Table::kCollisions:
        case Table::kIdRanges:
        case Table::kGarbage:
        case Table::kScrub:
        case Table::kLastScrub:
        case Table::kSavingsHistory:
        case Table::kScrubHistory:
        case Table::kBucketPosition:
        case Table::kEpochFloors:
          if (key.size() != 1) edit_.Remove(key);
          break;
        case Table::kDamage:
        case Table::kFormerSegments:
        case Table::kDirectoryEntry:
        case Table::kDirectoryCookie:
        case Table::kInode:
        case Table::kOverlay:
        case Table::kReplacement:
        case Table::kRemovedSegment:
        case Table::kSecondary:
        case Table::kSegment:
        case Table::kOrphan:
        case Table::kXattr:
        case Table::kQuota:
        case Table::kHidden:
        case Table::kSnapshot:  // RepairVersions repairs these tables
        case Table::kVersion:
        case Table::kVersionList:
        case Table::kLineage:
          iterator->Seek(RangeOf(static_cast<Table>(key[0])).end);
          continue;
        default:
          edit_.Remove(key);
      }
      iterator->Next();
    }
    return iterator->status();
  }

  MetadataEdit& edit_;
  const RecordRepairOptions& options_;
  std::vector<uint64_t>& lost_;
  TableCursor inodes_;
  TableCursor names_;
  TableCursor cookies_;
  TableCursor extents_;
  TableCursor orphans_;
  TableCursor xattrs_;
};

}  // namespace

Status RepairRecords(MetadataEdit& edit, const RecordRepairOptions& options,
                     std::vector<uint64_t>& lost) {
  return RecordRepair(edit, options, lost).Run();
}

}  // namespace siltfs
