#include "fs/repair/name_repair.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/table_cursor.h"

namespace siltfs {
namespace {

class NameRepair {
 public:
  NameRepair(MetadataEdit& edit, const std::set<uint64_t>& detached)
      : edit_(edit), detached_(detached) {}

  Status Run() {
    TableCursor inodes(edit_.snapshot(), Table::kInode);
    for (; inodes.inode() != TableCursor::kEnd; inodes.Next()) {
      const auto record = InodeRecord::Decode(inodes.value());
      if (!record.ok() || !record->IsDirectory()) continue;
      directory_ = inodes.inode();
      next_cookie_ = std::max(record->next_cookie, kFirstCookie);
      SILTFS_ASSIGN_OR_RETURN(const uint64_t highest, HighestCookie());
      next_cookie_ = std::max(next_cookie_, highest + 1);
      SILTFS_RETURN_IF_ERROR(RepairCookies());
      SILTFS_RETURN_IF_ERROR(RepairEntries());
    }
    return inodes.status();
  }

 private:
  Result<bool> Exists(uint64_t inode) {
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(InodeKey(inode)));
    return value.has_value();
  }
  // Returns the entry of this name; nullopt if there is none, or it is malformed.
  Result<std::optional<NameEntry>> NameOf(std::string_view name) {
    SILTFS_ASSIGN_OR_RETURN(const auto value,
                            edit_.snapshot().Get(DirectoryEntryKey(directory_, name)));
    const auto entry = value ? NameEntry::Decode(*value)
                             : Result<NameEntry>(Status(StatusCode::kNotFound, "no name"));
    return entry.ok() ? std::optional(*entry) : std::nullopt;
  }
  void PutCookie(const NameEntry& entry, std::string name) {
    edit_.Put(DirectoryCookieKey(directory_, entry.cookie),
              CookieEntry{entry.inode, entry.type, std::move(name)}.Encode());
  }

  Result<uint64_t> HighestCookie() {
    uint64_t highest = 0;
    const KeyRange range = RangeOf(Table::kDirectoryCookie, directory_);
    const auto iterator = edit_.snapshot().NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const auto parts = ParseNumberedKey(Table::kDirectoryCookie, iterator->key());
      if (parts) highest = parts->number;
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return highest;
  }

  // Removes malformed cookies, and each cookie with a name that has another cookie. If a cookie's
  // name is missing, adds the name. If the cookie's inode is missing or detached, removes the
  // cookie instead.
  Status RepairCookies() {
    const KeyRange range = RangeOf(Table::kDirectoryCookie, directory_);
    const auto iterator = edit_.snapshot().NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      const std::string key(iterator->key());
      const auto parts = ParseNumberedKey(Table::kDirectoryCookie, key);
      const auto cookie = CookieEntry::Decode(iterator->value());
      if (!parts || !cookie.ok() || parts->number < kFirstCookie || !IsName(cookie->name)) {
        edit_.Remove(key);
        continue;
      }
      SILTFS_ASSIGN_OR_RETURN(const auto name, NameOf(cookie->name));
      if (name && name->cookie == parts->number) continue;
      SILTFS_ASSIGN_OR_RETURN(const bool exists, Exists(cookie->inode));
      if (name || !exists || detached_.contains(cookie->inode)) {
        edit_.Remove(key);
        continue;
      }
      edit_.Put(DirectoryEntryKey(directory_, cookie->name),
                NameEntry{cookie->inode, cookie->type, parts->number}.Encode());
    }
    return iterator->status();
  }

  Status RepairEntries() {
    const KeyRange range = RangeOf(Table::kDirectoryEntry, directory_);
    const auto iterator = edit_.snapshot().NewIteratorBelow(range.end);
    for (iterator->Seek(range.begin); iterator->Valid(); iterator->Next()) {
      SILTFS_RETURN_IF_ERROR(
          RepairEntry(std::string(iterator->key()), std::string(iterator->value())));
    }
    return iterator->status();
  }

  Status RepairEntry(const std::string& key, const std::string& value) {
    const std::string name = key.substr(RangeOf(Table::kDirectoryEntry, directory_).begin.size());
    auto entry = NameEntry::Decode(value);
    if (!entry.ok()) {
      // The name's value is malformed. If the name has a valid cookie, RepairCookies has already
      // rewritten the value.
      SILTFS_ASSIGN_OR_RETURN(const bool remade, IsRemade(name));
      if (!remade) edit_.Remove(key);
      return Status::Ok();
    }
    SILTFS_ASSIGN_OR_RETURN(const auto value_there,
                            edit_.snapshot().Get(DirectoryCookieKey(directory_, entry->cookie)));
    const auto cookie = value_there
                            ? CookieEntry::Decode(*value_there)
                            : Result<CookieEntry>(Status(StatusCode::kNotFound, "no cookie"));
    const bool matches = cookie.ok() && entry->cookie >= kFirstCookie && cookie->name == name;
    SILTFS_ASSIGN_OR_RETURN(const bool exists, Exists(entry->inode));
    if (!exists || !IsName(name) || detached_.contains(entry->inode)) {
      edit_.Remove(key);
      if (matches) edit_.Remove(DirectoryCookieKey(directory_, entry->cookie));
      return Status::Ok();
    }
    if (matches) {
      if (cookie->inode != entry->inode || cookie->type != entry->type) PutCookie(*entry, name);
      return Status::Ok();
    }
    // The cookie belongs to another name, or its number is invalid. Allocate a new one.
    if (cookie.ok() || entry->cookie < kFirstCookie) {
      entry->cookie = next_cookie_++;
      edit_.Put(key, entry->Encode());
    }
    PutCookie(*entry, name);
    return Status::Ok();
  }

  // Whether RepairCookies found a cookie for this malformed name and rewrote the name.
  Result<bool> IsRemade(const std::string& name) {
    const KeyRange range = RangeOf(Table::kDirectoryCookie, directory_);
    const auto iterator = edit_.snapshot().NewIteratorBelow(range.end);
    bool remade = false;
    for (iterator->Seek(range.begin); iterator->Valid() && !remade; iterator->Next()) {
      const auto parts = ParseNumberedKey(Table::kDirectoryCookie, iterator->key());
      const auto cookie = CookieEntry::Decode(iterator->value());
      if (!parts || !cookie.ok() || parts->number < kFirstCookie || cookie->name != name) continue;
      SILTFS_ASSIGN_OR_RETURN(remade, Exists(cookie->inode));
      remade = remade && !detached_.contains(cookie->inode);
    }
    SILTFS_RETURN_IF_ERROR(iterator->status());
    return remade;
  }

  MetadataEdit& edit_;
  const std::set<uint64_t>& detached_;
  uint64_t directory_ = 0;
  uint64_t next_cookie_ = 0;
};

}  // namespace

Status RepairNames(MetadataEdit& edit, const std::set<uint64_t>& detached) {
  return NameRepair(edit, detached).Run();
}

}  // namespace siltfs
