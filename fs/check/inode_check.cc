#include "fs/check/inode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fs/check/directory_tree_check.h"
#include "fs/check/name_check.h"
#include "fs/check/quota_count.h"
#include "fs/content/file_content.h"
#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/snapshot_counters.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/table_cursor.h"
#include "store/base/checksum.h"

namespace siltfs {
namespace {

bool IsType(uint32_t type) {
  constexpr std::array<uint32_t, 7> kTypes = {0010000, 0020000, 0040000, 0060000,
                                              0100000, 0120000, 0140000};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// Returns a checksum of a directory entry. The table of names and the table of cookies give the
// same checksum for the same entry.
uint64_t LinkNumber(uint64_t cookie, uint64_t inode, uint32_t type, std::string_view name) {
  return Checksum(AsBytes(Encoder().U64(cookie).U64(inode).U32(type).Raw(name).Take()));
}

class InodeCheck {
 public:
  // `received`: the record of the received snapshot that is checked; null for the live files.
  InodeCheck(CheckContext& context, const KvSnapshot& snapshot, const SnapshotRecord* received)
      : context_(context),
        snapshot_(snapshot),
        received_(received),
        names_(snapshot, Table::kDirectoryEntry),
        inodes_(snapshot, Table::kInode),
        cookies_(snapshot, Table::kDirectoryCookie),
        extents_(snapshot, Table::kOverlay),
        orphans_(snapshot, Table::kOrphan),
        xattrs_(snapshot, Table::kXattr),
        links_(context, snapshot, received == nullptr),
        tree_(context, snapshot) {}

  Status Run();

 private:
  // The data of one inode, from all tables.
  struct Found {
    uint64_t number = 0;
    std::optional<InodeRecord> record;
    bool has_record = false;  // also true for a malformed record
    uint64_t names = 0;
    uint64_t subdirectories = 0;
    uint64_t cookies = 0;
    uint64_t highest_cookie = 0;
    uint64_t name_links = 0;  // sums of LinkNumber
    uint64_t cookie_links = 0;
    uint64_t extents = 0;
    uint64_t slices = 0;
    uint64_t overlay_bytes = 0;
    uint64_t overlay_end = 0;
    uint64_t xattrs = 0;
    bool orphan = false;
  };

  void Say(const char* code, uint64_t inode, std::string message) {
    context_.Report({.code = code,
                     .path = MetadataPath(context_.store()),
                     .inode = inode,
                     .message = std::move(message)});
  }
  void ReadRecord(Found& found);
  void ReadNames(Found& found);
  void ReadCookies(Found& found);
  void ReadExtents(Found& found);
  void ReadMarks(Found& found);
  Status Judge(const Found& found);
  Status JudgeDirectory(const Found& found);
  void JudgeFile(const Found& found);
  // Reports the names and cookies that do not match.
  Status MatchNames(uint64_t directory);
  void CheckCounters();
  void CheckQuotas();

  bool IsHidden(uint64_t inode) const { return received_ == nullptr && context_.IsHidden(inode); }
  bool IsUnallocated(uint64_t inode) const;
  // The counters that the records must have.
  Result<std::optional<Counters>> ReadCounters() const;

  CheckContext& context_;
  const KvSnapshot& snapshot_;
  const SnapshotRecord* const received_;
  TableCursor names_;
  TableCursor inodes_;
  TableCursor cookies_;
  TableCursor extents_;
  TableCursor orphans_;
  TableCursor xattrs_;
  NameCheck links_;
  DirectoryTreeCheck tree_;
  QuotaCount quotas_;  // of the live files
  Counters sums_{};
  bool sums_known_ = true;
};

Status InodeCheck::Run() {
  const std::array<TableCursor*, 6> all = {&names_,   &inodes_,  &cookies_,
                                           &extents_, &orphans_, &xattrs_};
  uint64_t done = 0;
  bool root = false;
  if (received_ == nullptr) SILTFS_RETURN_IF_ERROR(quotas_.Load(snapshot_));
  for (;;) {
    Found found;
    found.number = TableCursor::kEnd;
    for (const TableCursor* cursor : all) found.number = std::min(found.number, cursor->inode());
    if (found.number == TableCursor::kEnd) break;
    ReadRecord(found);
    ReadNames(found);
    ReadCookies(found);
    ReadExtents(found);
    ReadMarks(found);
    root |= found.number == kRootInode && found.has_record;
    SILTFS_RETURN_IF_ERROR(Judge(found));
    if (++done % 256 == 0) {
      SILTFS_RETURN_IF_ERROR(context_.Continue());
      context_.Progress({.phase = "metadata", .done = done, .total = 0});
    }
  }
  uint64_t malformed = 0;
  for (const TableCursor* cursor : all) {
    SILTFS_RETURN_IF_ERROR(cursor->status());
    malformed += cursor->malformed();
  }
  if (malformed > 0) Say("metadata-key", 0, fmt::format("{} keys are malformed", malformed));
  if (!root) Say("root", kRootInode, "there is no root directory");
  SILTFS_RETURN_IF_ERROR(links_.Finish());
  CheckCounters();
  CheckQuotas();
  return Status::Ok();
}

void InodeCheck::ReadRecord(Found& found) {
  for (; inodes_.inode() == found.number; inodes_.Next()) {
    if (!inodes_.rest().empty()) {
      Say("metadata-key", found.number, "the key of an inode is malformed");
      continue;
    }
    found.has_record = true;
    auto record = InodeRecord::Decode(inodes_.value());
    if (record.ok() && !IsType(record->type())) {
      record = Status(StatusCode::kCorruption, "there is no such type of inode");
    }
    if (record.ok()) {
      found.record = std::move(record).value();
    } else {
      Say("inode-record", found.number, std::string(record.status().cause()));
      sums_known_ = false;
    }
  }
}

void InodeCheck::ReadNames(Found& found) {
  for (; names_.inode() == found.number; names_.Next()) {
    const std::string_view name = names_.rest();
    const auto entry = NameEntry::Decode(names_.value());
    if (!entry.ok() || !IsName(name)) {
      Say("name-record", found.number,
          entry.ok() ? std::string("the directory has an impossible name")
                     : fmt::format("the name \"{}\" in the directory is malformed: {}", name,
                                   entry.status().cause()));
    }
    ++found.names;
    if (!entry.ok()) continue;
    if (entry->type == 0040000) ++found.subdirectories;
    found.name_links += LinkNumber(entry->cookie, entry->inode, entry->type, name);
  }
}

void InodeCheck::ReadCookies(Found& found) {
  for (; cookies_.inode() == found.number; cookies_.Next()) {
    uint64_t cookie = 0;
    const auto entry = CookieEntry::Decode(cookies_.value());
    if (!cookies_.Number(cookie) || !entry.ok() || cookie < kFirstCookie) {
      Say("cookie-record", found.number, "an entry in the directory's order is malformed");
      continue;
    }
    ++found.cookies;
    found.highest_cookie = cookie;
    found.cookie_links += LinkNumber(cookie, entry->inode, entry->type, entry->name);
  }
}

void InodeCheck::ReadExtents(Found& found) {
  bool overlaps = false;
  for (; extents_.inode() == found.number; extents_.Next()) {
    uint64_t offset = 0;
    const auto extent = OverlayExtent::Decode(extents_.value());
    if (!extents_.Number(offset) || !extent.ok() || offset > kMaxRecipeBytes) {
      Say("overlay-record", found.number,
          extent.ok() ? std::string("the key of an overlay's extent is malformed")
                      : std::string(extent.status().cause()));
      continue;
    }
    if (offset < found.overlay_end && !overlaps) {
      overlaps = true;
      Say("overlay-overlap", found.number,
          fmt::format("the overlay's extent at offset {} begins before the previous one ends",
                      offset));
    }
    found.overlay_end = std::max(found.overlay_end, offset + extent->length);
    ++found.extents;
    found.slices += extent->slices.size();
    if (extent->kind != OverlayExtent::Kind::kHole) found.overlay_bytes += extent->length;
  }
}

void InodeCheck::ReadMarks(Found& found) {
  for (; orphans_.inode() == found.number; orphans_.Next()) {
    found.orphan = true;
    if (!orphans_.rest().empty() || !orphans_.value().empty())
      Say("metadata-key", found.number, "the mark of an orphan is malformed");
  }
  for (; xattrs_.inode() == found.number; xattrs_.Next()) {
    ++found.xattrs;
    if (xattrs_.rest().empty())
      Say("metadata-key", found.number, "an extended attribute has no name");
  }
}

Status InodeCheck::Judge(const Found& found) {
  if (IsHidden(found.number)) return Status::Ok();
  context_.Count([&found, this](CheckReport& report) {
    if (received_ != nullptr) return;
    report.names += found.names;
    report.xattrs += found.xattrs;
    report.overlay_extents += found.extents;
    report.orphans += found.orphan ? 1 : 0;
    if (found.record) ++(found.record->IsDirectory() ? report.directories : report.files);
  });
  if (!found.has_record) {
    Say("inode-missing", found.number,
        fmt::format("the inode is missing, but it has {} names, {} overlay extents, {} attributes"
                    "{}",
                    found.names, found.extents, found.xattrs,
                    found.orphan ? " and the mark of an orphan" : ""));
    return Status::Ok();
  }
  if (IsUnallocated(found.number)) {
    Say("inode-number", found.number, "the inode's number was never allocated");
  }
  SILTFS_RETURN_IF_ERROR(links_.Add(found.number, found.record, found.orphan));
  if (!found.record) return Status::Ok();
  const InodeRecord& record = *found.record;
  if (record.xattrs != found.xattrs) {
    Say("xattr-count", found.number,
        fmt::format("the inode has {} extended attributes, but its record says {}", found.xattrs,
                    record.xattrs));
  }
  if (found.orphan != (record.links == 0)) {
    Say("orphan", found.number,
        found.orphan
            ? fmt::format("the inode has {} links and is marked as an orphan", record.links)
            : std::string("the inode has no links and is not marked as an orphan"));
  }
  quotas_.Add(found.number, record);
  if (record.IsDirectory()) {
    ++sums_[static_cast<size_t>(Counter::kDirectories)];
    return JudgeDirectory(found);
  }
  ++sums_[static_cast<size_t>(Counter::kFiles)];
  if (found.names > 0 || found.cookies > 0)
    Say("not-a-directory", found.number, "there are names in an inode that is no directory");
  JudgeFile(found);
  return Status::Ok();
}

Status InodeCheck::JudgeDirectory(const Found& found) {
  const InodeRecord& record = *found.record;
  if (record.entries != found.names) {
    Say("entry-count", found.number,
        fmt::format("the directory has {} entries, but its record says {}", found.names,
                    record.entries));
  }
  if (record.links != 0 && record.links != 2 + found.subdirectories) {
    Say("link-count", found.number,
        fmt::format("the directory has {} links and should have {}", record.links,
                    2 + found.subdirectories));
  }
  if (found.highest_cookie >= record.next_cookie) {
    Say("next-cookie", found.number,
        fmt::format("the directory's next cookie is {}, but {} is taken", record.next_cookie,
                    found.highest_cookie));
  }
  if (found.extents > 0) Say("not-a-file", found.number, "a directory has an overlay");
  if (found.names != found.cookies || found.name_links != found.cookie_links)
    SILTFS_RETURN_IF_ERROR(MatchNames(found.number));
  return tree_.Add(found.number, record);
}

void InodeCheck::JudgeFile(const Found& found) {
  const InodeRecord& record = *found.record;
  if (!record.IsRegular()) {
    if (found.extents > 0)
      Say("not-a-file", found.number, "an inode that is no file has an overlay");
    return;
  }
  sums_[static_cast<size_t>(Counter::kLogicalBytes)] +=
      static_cast<int64_t>(FileContent::AllocatedBytes(record));
  sums_[static_cast<size_t>(Counter::kChunkReferences)] +=
      static_cast<int64_t>(FileContent::ChunkReferences(record));
  if (record.has_overlay != (found.extents > 0) || record.overlay_chunks != found.slices ||
      record.overlay_bytes != found.overlay_bytes) {
    Say("overlay-totals", found.number,
        fmt::format("the overlay has {} extents, {} chunk slices and {} bytes, the inode says {}, "
                    "{} and {}",
                    found.extents, found.slices, found.overlay_bytes,
                    record.has_overlay ? "some" : "none", record.overlay_chunks,
                    record.overlay_bytes));
  }
  if (found.overlay_end > record.size) {
    Say("overlay-end", found.number,
        fmt::format("the overlay reaches to {}, beyond the file's {} bytes", found.overlay_end,
                    record.size));
  }
}

Status InodeCheck::MatchNames(uint64_t directory) {
  KeyRange range = RangeOf(Table::kDirectoryEntry, directory);
  auto iterator = snapshot_.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const std::string name(iterator->key().substr(9));
    const auto entry = NameEntry::Decode(iterator->value());
    if (!entry.ok()) continue;  // already reported
    SILTFS_ASSIGN_OR_RETURN(const auto value,
                            snapshot_.Get(DirectoryCookieKey(directory, entry->cookie)));
    const CookieEntry wanted{entry->inode, entry->type, name};
    if (value && *value == wanted.Encode()) continue;
    Say("name-without-cookie", directory,
        fmt::format("the name \"{}\" has cookie {}, which {}", name, entry->cookie,
                    value ? "does not match it" : "is missing"));
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  range = RangeOf(Table::kDirectoryCookie, directory);
  iterator = snapshot_.NewIteratorBelow(range.end);
  for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
    const auto parts = ParseNumberedKey(Table::kDirectoryCookie, iterator->key());
    const auto entry = CookieEntry::Decode(iterator->value());
    if (!parts || !entry.ok()) continue;
    SILTFS_ASSIGN_OR_RETURN(const auto value,
                            snapshot_.Get(DirectoryEntryKey(directory, entry->name)));
    const auto name = value ? NameEntry::Decode(*value)
                            : Result<NameEntry>(Status(StatusCode::kNotFound, "no name"));
    // A name with this cookie but other data was reported above.
    if (name.ok() && name->cookie == parts->number) continue;
    Say("cookie-without-name", directory,
        fmt::format("cookie {} is of \"{}\", which {}", parts->number, entry->name,
                    name.ok() ? "has another cookie" : "is not a name in the directory"));
  }
  return iterator->status();
}

void InodeCheck::CheckQuotas() {
  QuotaNumber last = kNoQuota;
  for (const QuotaFault& fault : quotas_.Faults(sums_known_)) {
    // The records of a quota that must be removed are one fault.
    if (fault.quota == kNoQuota || fault.quota != last)
      context_.Report(
          {.code = "quota", .path = MetadataPath(context_.store()), .message = fault.message});
    last = fault.quota;
  }
}

bool InodeCheck::IsUnallocated(uint64_t inode) const {
  if (inode == 0) return true;
  if (received_ != nullptr) return inode >= received_->inode_limit;
  return context_.records_known && inode >= context_.ids.inode_limit;
}

Result<std::optional<Counters>> InodeCheck::ReadCounters() const {
  if (received_ != nullptr) return std::optional(CountersOf(*received_));
  Counters counters{};
  SILTFS_ASSIGN_OR_RETURN(const auto value, snapshot_.Get(kCountersKey));
  if (!value) return std::optional(counters);
  Decoder in(AsBytes(*value));
  for (int64_t& counter : counters) counter = in.I64();
  return in.Done() ? std::optional(counters) : std::optional<Counters>();
}

void InodeCheck::CheckCounters() {
  const auto read = ReadCounters();
  if (!read.ok()) return context_.Report("metadata-read", read.status());
  if (!*read) return Say("counter", 0, "the counters are malformed");
  if (!sums_known_) return;
  const Counters& counters = **read;
  struct Named {
    Counter counter;
    std::string_view name;
  };
  for (const auto& [counter, name] : {Named{Counter::kLogicalBytes, "logical bytes"},
                                      Named{Counter::kFiles, "inodes that are no directories"},
                                      Named{Counter::kDirectories, "directories"},
                                      Named{Counter::kChunkReferences, "references to chunks"}}) {
    const auto at = static_cast<size_t>(counter);
    if (counters[at] == sums_[at]) continue;
    context_.Report({.code = "counter",
                     .path = MetadataPath(context_.store()),
                     .message = fmt::format("the store counts {} {}, there are {}", counters[at],
                                            name, sums_[at])});
  }
}

}  // namespace

Status CheckInodes(CheckContext& context, const KvSnapshot& snapshot) {
  return InodeCheck(context, snapshot, nullptr).Run();
}

Status CheckReceivedInodes(CheckContext& context, const KvSnapshot& snapshot,
                           const SnapshotRecord& record) {
  return InodeCheck(context, snapshot, &record).Run();
}

}  // namespace siltfs
