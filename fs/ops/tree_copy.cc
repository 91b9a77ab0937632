#include "fs/ops/tree_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "fs/inodes/inode_table.h"
#include "fs/records/schema.h"
#include "fs/records/source_record.h"

namespace siltfs {
namespace {

// The next inode of a directory often lies a few records further. If it does not, a search is
// faster than more steps.
constexpr int kStepsBeforeSearch = 4;

Status Contradiction(uint64_t inode, std::string_view what) {
  return {StatusCode::kCorruption,
          fmt::format("inode {} {}: run siltfs fsck on the unmounted store", inode, what)};
}

// Moves the cursor to the first key at or after `key`.
void GoTo(KvIterator& cursor, const std::string& key) {
  for (int steps = 0; steps < kStepsBeforeSearch && cursor.Valid() && cursor.key() < key; ++steps)
    cursor.Next();
  // The cursor may have come from a later key, so it must stand at the key itself.
  if (!cursor.Valid() || cursor.key() != key) cursor.Seek(key);
}

// Moves the cursor to the first key of the range, or behind the range if it is empty. After one
// range was read to its end, the cursor usually stands at the next range already.
void GoTo(KvIterator& cursor, const KeyRange& range, std::string_view last_end) {
  // Only behind the range that was read last it is known that no earlier key was passed.
  const bool forward = cursor.Valid() && !last_end.empty() && range.begin >= last_end;
  for (int steps = 0;
       forward && steps < kStepsBeforeSearch && cursor.Valid() && cursor.key() < range.begin;
       ++steps) {
    cursor.Next();
  }
  if (!forward || !cursor.Valid() || cursor.key() < range.begin) cursor.Seek(range.begin);
}

// The value of an extended attribute in the copy.
std::string XattrOfCopy(std::string_view name, std::string_view value, int64_t old_ctime,
                        int64_t new_ctime) {
  if (name == kSourceXattr) {
    auto kept = SourceRecord::Decode(value);
    // The copy is as unchanged since its import as the source is.
    if (kept.ok() && kept->own_ctime == old_ctime) {
      kept->own_ctime = new_ctime;
      return kept->Encode();
    }
  }
  return std::string(value);
}

}  // namespace

TreeCopy::TreeCopy(const KvSnapshot& snapshot, const CloneRequest& request, int64_t now,
                   uint64_t quota, HiddenWriter& writer, size_t most_links)
    : request_(request),
      now_(now),
      quota_(quota),
      writer_(writer),
      links_(writer, most_links),
      inodes_(snapshot.NewIteratorBelow(RangeOf(Table::kInode).end)),
      cookies_(snapshot.NewIteratorBelow(RangeOf(Table::kDirectoryCookie).end)),
      xattrs_(snapshot.NewIteratorBelow(RangeOf(Table::kXattr).end)),
      extents_(snapshot.NewIteratorBelow(RangeOf(Table::kOverlay).end)) {}

Result<TreeCopy::Root> TreeCopy::Copy() {
  auto found = FindRecord(request_.source);
  if (found.status().Is(StatusCode::kNotFound) || (found.ok() && found->links == 0))
    return Status(StatusCode::kNotFound, "the source was removed");
  SILTFS_RETURN_IF_ERROR(found.status());
  Root root;
  root.record = *std::move(found);
  SILTFS_ASSIGN_OR_RETURN(root.number, writer_.NextNumber());
  SILTFS_RETURN_IF_ERROR(CopyParts(request_.source, root.number, root.record));
  if (root.record.IsDirectory()) {
    root.record.parent = request_.parent;
    AddDirectory({.source = request_.source,
                  .copy = root.number,
                  .entries = root.record.entries,
                  .next_cookie = kFirstCookie});
    SILTFS_RETURN_IF_ERROR(CopyDirectories());
  } else {
    root.record.links = 1;
  }
  SILTFS_RETURN_IF_ERROR(links_.Finish([this](uint64_t inode, const HiddenLink& link) -> Status {
    SILTFS_ASSIGN_OR_RETURN(InodeRecord record, FindRecord(inode));
    record.links = link.names;
    record.parent = 0;  // its names in the copy are in directories that are not known here
    record.quota = quota_;
    record.ctime = record.btime = now_;
    writer_.Replace(InodeKey(link.copy), record.Encode());
    return FlushIfFull();
  }));
  SILTFS_RETURN_IF_ERROR(writer_.Finish());
  if (request_.on_progress) SILTFS_RETURN_IF_ERROR(request_.on_progress(totals_));
  return root;
}

Status TreeCopy::CopyDirectories() {
  uint64_t at = 0;  // the directory at whose next entry the cursor is
  while (Directory* const directory = NextToRead()) {
    if (directory->source != at)
      cookies_->Seek(DirectoryCookieKey(directory->source, directory->next_cookie));
    at = directory->source;
    SILTFS_RETURN_IF_ERROR(cookies_->status());
    const auto key = cookies_->Valid() ? ParseNumberedKey(Table::kDirectoryCookie, cookies_->key())
                                       : std::nullopt;
    if (!key || key->inode != directory->source) {
      if (directory->found != directory->entries)
        return Contradiction(directory->source, "has another number of entries than it states");
      levels_.back().reading.reset();
      at = 0;
      continue;
    }
    SILTFS_ASSIGN_OR_RETURN(const CookieEntry entry, CookieEntry::Decode(cookies_->value()));
    ++directory->found;
    directory->next_cookie = key->number + 1;
    SILTFS_RETURN_IF_ERROR(CopyEntry(*directory, key->number, entry));
    cookies_->Next();
    SILTFS_RETURN_IF_ERROR(FlushIfFull());
  }
  return Status::Ok();
}

TreeCopy::Directory* TreeCopy::NextToRead() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.reading && !level.waiting.empty()) {
      level.reading = level.waiting.front();
      level.waiting.pop_front();
      --waiting_;
    }
    if (level.reading) return &*level.reading;
    levels_.pop_back();
  }
  return nullptr;
}

void TreeCopy::AddDirectory(const Directory& found) {
  if (levels_.empty() || waiting_ >= request_.most_directories) levels_.emplace_back();
  levels_.back().waiting.push_back(found);
  ++waiting_;
}

Status TreeCopy::CopyEntry(Directory& directory, uint64_t cookie, const CookieEntry& entry) {
  const auto found = FindRecord(entry.inode);
  if (found.status().Is(StatusCode::kNotFound))
    return Contradiction(entry.inode, "has a name but does not exist");
  SILTFS_RETURN_IF_ERROR(found.status());
  InodeRecord record = *found;
  if (record.type() != entry.type) return Contradiction(entry.inode, "has a name of another type");
  const uint64_t parent = directory.copy;  // AddDirectory may move `directory`
  std::optional<uint64_t> copy;
  const bool linked = !record.IsDirectory() && record.links > 1;
  if (linked) {
    SILTFS_ASSIGN_OR_RETURN(copy, links_.CountName(entry.inode));
  }
  if (!copy) {
    SILTFS_ASSIGN_OR_RETURN(copy, writer_.NextNumber());
    if (linked) SILTFS_RETURN_IF_ERROR(links_.Add(entry.inode, *copy, record.links));
    SILTFS_RETURN_IF_ERROR(CopyParts(entry.inode, *copy, record));
    if (record.IsDirectory()) {
      // Each directory has one parent. So a walk that checks it meets no directory below itself.
      if (record.parent != directory.source || entry.inode == request_.source)
        return Contradiction(entry.inode, "is a directory with another parent");
      AddDirectory({.source = entry.inode,
                    .copy = *copy,
                    .entries = record.entries,
                    .next_cookie = kFirstCookie});
    }
    record.parent = parent;
    writer_.Put(InodeKey(*copy), record.Encode());
  }
  writer_.Put(DirectoryEntryKey(parent, entry.name), NameEntry{*copy, entry.type, cookie}.Encode());
  writer_.Put(DirectoryCookieKey(parent, cookie),
              CookieEntry{*copy, entry.type, entry.name}.Encode());
  return Status::Ok();
}

Status TreeCopy::CopyParts(uint64_t source, uint64_t copy, InodeRecord& record) {
  if (request_.admit) {
    Status admitted = request_.admit({record.mode, record.uid, record.gid});
    if (!admitted.ok()) return std::move(admitted).At(fmt::format("inode {}", source));
  }
  if (record.xattrs > 0) SILTFS_RETURN_IF_ERROR(CopyXattrs(source, copy, record));
  if (record.has_overlay) SILTFS_RETURN_IF_ERROR(CopyOverlay(source, copy));
  record.ctime = record.btime = now_;
  record.quota = quota_;
  if (record.IsDirectory()) {
    ++totals_.directories;
    return Status::Ok();
  }
  ++totals_.files;
  if (!record.IsRegular()) return Status::Ok();
  const ContentTally tally(record);
  // The sum must not look like a negative number to the quota.
  if (quota_ != kNoQuota &&
      totals_.logical_bytes >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max() - tally.allocated)) {
    return Status(StatusCode::kQuotaExceeded, "the copies hold more than a quota can count, 8 EiB");
  }
  totals_.logical_bytes += static_cast<uint64_t>(tally.allocated);
  references_ += static_cast<uint64_t>(tally.references);
  return Status::Ok();
}

Status TreeCopy::CopyXattrs(uint64_t source, uint64_t copy, const InodeRecord& record) {
  const KeyRange range = RangeOf(Table::kXattr, source);
  uint32_t found = 0;
  GoTo(*xattrs_, range, xattrs_read_);
  for (; xattrs_->Valid() && xattrs_->key() < range.end; xattrs_->Next()) {
    const auto name = ParseXattrName(xattrs_->key());
    if (!name) return Contradiction(source, "has a malformed extended attribute");
    if (request_.admit_xattr && !IsHiddenXattr(*name)) {
      Status admitted = request_.admit_xattr(*name);
      if (!admitted.ok()) return std::move(admitted).At(fmt::format("inode {}", source));
    }
    writer_.Put(XattrKey(copy, *name), XattrOfCopy(*name, xattrs_->value(), record.ctime, now_));
    ++found;
    SILTFS_RETURN_IF_ERROR(FlushIfFull());
  }
  xattrs_read_ = range.end;
  SILTFS_RETURN_IF_ERROR(xattrs_->status());
  if (found != record.xattrs)
    return Contradiction(source, "has another number of extended attributes than it states");
  return Status::Ok();
}

Status TreeCopy::CopyOverlay(uint64_t source, uint64_t copy) {
  const KeyRange range = RangeOf(Table::kOverlay, source);
  for (extents_->Seek(range.begin); extents_->Valid() && extents_->key() < range.end;
       extents_->Next()) {
    const auto key = ParseNumberedKey(Table::kOverlay, extents_->key());
    if (!key) return Contradiction(source, "has a malformed overlay");
    writer_.Put(OverlayKey(copy, key->number), std::string(extents_->value()));
    SILTFS_RETURN_IF_ERROR(FlushIfFull());
  }
  return extents_->status();
}

Result<InodeRecord> TreeCopy::FindRecord(uint64_t inode) {
  const std::string key = InodeKey(inode);
  GoTo(*inodes_, key);
  SILTFS_RETURN_IF_ERROR(inodes_->status());
  if (!inodes_->Valid() || inodes_->key() != key)
    return Status(StatusCode::kNotFound, fmt::format("there is no inode {}", inode));
  return InodeRecord::Decode(inodes_->value());
}

Status TreeCopy::FlushIfFull() {
  if (!writer_.IsFull()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(writer_.Flush());
  return request_.on_progress ? request_.on_progress(totals_) : Status::Ok();
}

}  // namespace siltfs
