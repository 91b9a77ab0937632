#include "fs/diff/tree_reader.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {

Status Contradiction(uint64_t inode, std::string_view what) {
  return {
      StatusCode::kCorruption,
      fmt::format("the metadata contradict each other: inode {} {}; run siltfs fsck", inode, what)};
}

TreeReader::TreeReader(const KvSnapshot& state) : state_(state) {}

Result<std::optional<InodeRecord>> TreeReader::FindInode(uint64_t inode) const {
  SILTFS_ASSIGN_OR_RETURN(const auto value, state_.Get(InodeKey(inode)));
  if (!value) return std::optional<InodeRecord>();
  SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*value));
  if (record.links == 0) return std::optional<InodeRecord>();
  return std::optional(std::move(record));
}

Result<InodeRecord> TreeReader::ReadChildDirectory(uint64_t directory, uint64_t parent) const {
  SILTFS_ASSIGN_OR_RETURN(auto record, FindInode(directory));
  if (!record) return Contradiction(directory, "has a name but does not exist");
  if (!record->IsDirectory()) return Contradiction(directory, "has a name of another type");
  if (record->parent != parent) return Contradiction(directory, "is in another directory");
  return *std::move(record);
}

Result<std::optional<NameEntry>> TreeReader::FindName(const NamePlace& place) const {
  SILTFS_ASSIGN_OR_RETURN(const auto value,
                          state_.Get(DirectoryEntryKey(place.directory, place.name)));
  if (!value) return std::optional<NameEntry>();
  SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(*value));
  return std::optional(entry);
}

Result<std::optional<TreeReader::Name>> TreeReader::NextName(uint64_t directory,
                                                             std::string_view last) {
  if (directory != directory_) {
    names_ = state_.NewIteratorBelow(RangeOf(Table::kDirectoryEntry, directory).end);
    directory_ = directory;
    at_.clear();
  }
  const std::string after = DirectoryEntryKey(directory, last);
  if (at_ != after || !names_->Valid() || names_->key() != after) names_->Seek(after);
  if (names_->Valid() && names_->key() == after) names_->Next();
  at_.clear();
  SILTFS_RETURN_IF_ERROR(names_->status());
  if (!names_->Valid()) return std::optional<Name>();
  auto place = ParseDirectoryEntryKey(names_->key());
  if (!place || place->directory != directory) return std::optional<Name>();
  SILTFS_ASSIGN_OR_RETURN(const NameEntry entry, NameEntry::Decode(names_->value()));
  at_ = names_->key();
  return std::optional(Name{std::move(place->name), entry});
}

}  // namespace siltfs
