#include "fs/ops/directory_names.h"

#include <fmt/format.h>

#include "fs/records/schema.h"

namespace siltfs {

Status DirectoryNames::CheckName(std::string_view name) {
  if (name.size() > kMaxNameBytes)
    return Status(StatusCode::kNameTooLong, "the name is longer than 255 bytes");
  if (!IsName(name)) return Status(StatusCode::kInvalidArgument, "is not a valid name");
  return Status::Ok();
}

Result<std::optional<NameEntry>> DirectoryNames::FindName(InodeNumber directory,
                                                          std::string_view name) const {
  SILTFS_ASSIGN_OR_RETURN(auto value, store_.metadata().Get(DirectoryEntryKey(directory, name)));
  if (!value) return std::optional<NameEntry>();
  SILTFS_ASSIGN_OR_RETURN(NameEntry entry, NameEntry::Decode(*value));
  return std::optional<NameEntry>(entry);
}

Result<std::optional<NameEntry>> DirectoryNames::FindName(const Inode& directory,
                                                          std::string_view name) const {
  if (directory.names && !directory.names->MayContain(name)) return std::optional<NameEntry>();
  return FindName(directory.number, name);
}

Status DirectoryNames::CheckDirectory(const Inode& directory) {
  if (!directory.record.IsDirectory())
    return Status(StatusCode::kNotADirectory, "is not a directory");
  if (directory.record.links == 0)
    return Status(StatusCode::kNotFound, "the directory was removed");
  return Status::Ok();
}

void DirectoryNames::PutName(Inode& directory, std::string_view name, Inode& child, uint64_t cookie,
                             Change& change) {
  if (directory.names) directory.names->Add(name);
  if (!child.record.IsDirectory()) child.record.parent = directory.number;
  const uint32_t type = child.record.type();
  change.Put(DirectoryEntryKey(directory.number, name),
             NameEntry{child.number, type, cookie}.Encode());
  change.Put(DirectoryCookieKey(directory.number, cookie),
             CookieEntry{child.number, type, std::string(name)}.Encode());
}

void DirectoryNames::AddName(Inode& directory, std::string_view name, Inode& child,
                             Change& change) {
  PutName(directory, name, child, directory.record.next_cookie++, change);
  ++directory.record.entries;
}

void DirectoryNames::DropName(Inode& directory, std::string_view name, const NameEntry& entry,
                              Change& change) {
  change.Delete(DirectoryEntryKey(directory.number, name));
  change.Delete(DirectoryCookieKey(directory.number, entry.cookie));
  --directory.record.entries;
}

Status DirectoryNames::CheckNotInside(InodeNumber directory, InodeNumber ancestor) const {
  // In damaged metadata, the parents may form a cycle. Brent's algorithm finds the cycle: the walk
  // meets the directory `mark` again.
  InodeNumber mark = directory;
  const auto inside = [] {
    return Status(StatusCode::kInvalidArgument, "a directory cannot go into itself");
  };
  if (ancestor == kRootInode) return inside();
  for (uint64_t steps = 1, next_mark = 2; directory != kRootInode; ++steps) {
    if (directory == ancestor) return inside();
    SILTFS_ASSIGN_OR_RETURN(auto value, store_.metadata().Get(InodeKey(directory)));
    if (!value) return Status(StatusCode::kStale, "the directory was removed");
    SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*value));
    if (!record.IsDirectory() || record.parent == mark) {
      return Status(
          StatusCode::kCorruption,
          fmt::format("the parents of directory {} do not lead to the root: run siltfs fsck -y",
                      directory));
    }
    directory = record.parent;
    if (steps == next_mark) {
      mark = directory;
      next_mark *= 2;
    }
  }
  return Status::Ok();
}

Status DirectoryNames::NoSuchName(InodeNumber directory) {
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(
      directory, false, [](const Inode& inode) { return CheckDirectory(inode); }));
  return Status(StatusCode::kNotFound, "there is no such name");
}

}  // namespace siltfs
