#include "fs/repair/lost_and_found.h"

#include <fmt/format.h>

#include <utility>

#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;
constexpr std::string_view kName = "lost+found";
constexpr int kMostNames = 1000;

Result<InodeRecord> ReadInode(const KvSnapshot& snapshot, uint64_t inode) {
  SILTFS_ASSIGN_OR_RETURN(const auto value, snapshot.Get(InodeKey(inode)));
  if (!value) return Status(StatusCode::kCorruption, fmt::format("there is no inode {}", inode));
  return InodeRecord::Decode(*value);
}

}  // namespace

void LostAndFound::AddName(uint64_t directory, InodeRecord& record, std::string name,
                           uint64_t inode, uint32_t type) {
  const uint64_t cookie = record.next_cookie++;
  ++record.entries;
  if (type == kDirectoryType) ++record.links;
  edit_.Put(DirectoryEntryKey(directory, name), NameEntry{inode, type, cookie}.Encode());
  edit_.Put(DirectoryCookieKey(directory, cookie),
            CookieEntry{inode, type, std::move(name)}.Encode());
}

Result<std::optional<uint64_t>> LostAndFound::Find(std::string_view name) {
  SILTFS_ASSIGN_OR_RETURN(const auto value,
                          edit_.snapshot().Get(DirectoryEntryKey(kRootInode, name)));
  if (!value) return std::optional<uint64_t>();
  SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(*value));
  return std::optional(entry.inode);
}

Status LostAndFound::Make() {
  SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(kIdRangesKey));
  if (!value) return Status(StatusCode::kCorruption, "metadata has lost its id ranges");
  SILTFS_ASSIGN_OR_RETURN(IdRanges ids, IdRanges::Decode(*value));
  number_ = ids.inode_limit++;
  edit_.Put(std::string(kIdRangesKey), ids.Encode());
  record_.mode = kDirectoryType | 0700;
  record_.links = 2;
  record_.uid = root_.uid;
  record_.gid = root_.gid;
  record_.parent = kRootInode;
  record_.next_cookie = kFirstCookie;
  record_.atime = record_.mtime = record_.ctime = record_.btime = now_;
  made_ = true;
  return Status::Ok();
}

Status LostAndFound::Open() {
  SILTFS_ASSIGN_OR_RETURN(root_, ReadInode(edit_.snapshot(), kRootInode));
  std::string name(kName);
  for (int i = 1; i < kMostNames; ++i) {
    SILTFS_ASSIGN_OR_RETURN(const auto found, Find(name));
    if (!found) {
      SILTFS_RETURN_IF_ERROR(Make());
      AddName(kRootInode, root_, name, number_, kDirectoryType);
      return Status::Ok();
    }
    auto record = ReadInode(edit_.snapshot(), *found);
    if (record.ok() && record->IsDirectory() && record->links > 0) {
      number_ = *found;
      record_ = std::move(record).value();
      return Status::Ok();
    }
    record.status().IgnoreError("another object has this name");
    name = fmt::format("{}.{}", kName, i);
  }
  return Status(StatusCode::kAlreadyExists, "every name for the directory lost+found is taken");
}

Result<uint64_t> LostAndFound::TakeIn(uint64_t inode, uint32_t type) {
  if (number_ == 0) SILTFS_RETURN_IF_ERROR(Open());
  std::string name = fmt::format("#{}", inode);
  for (int i = 1; !made_ && i < kMostNames; ++i) {
    SILTFS_ASSIGN_OR_RETURN(const auto taken,
                            edit_.snapshot().Get(DirectoryEntryKey(number_, name)));
    if (!taken) break;
    name = fmt::format("#{}.{}", inode, i);
  }
  AddName(number_, record_, std::move(name), inode, type);
  return number_;
}

Status LostAndFound::Finish() {
  if (number_ == 0) return Status::Ok();
  edit_.Put(InodeKey(number_), record_.Encode());
  if (made_) edit_.Put(InodeKey(kRootInode), root_.Encode());
  return Status::Ok();
}

}  // namespace siltfs
