#include "fs/repair/link_repair.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fs/interface/file_system.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/table_cursor.h"
#include "fs/repair/lost_and_found.h"
#include "fs/repair/metadata_edit.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;

// One pass: some inodes, and all names that refer to them.
class LinkPass {
 public:
  LinkPass(KvStore& kv, const LinkRepairOptions& options)
      : options_(options), edit_(kv), lost_and_found_(edit_, options.now) {}

  // Repairs inodes from `first` on; returns the first inode of the next pass, or kEnd.
  Result<uint64_t> Run(uint64_t first) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t next, ReadInodes(first));
    SILTFS_RETURN_IF_ERROR(ReadNames());
    for (const Slot& slot : slots_) SILTFS_RETURN_IF_ERROR(Mend(slot));
    SILTFS_RETURN_IF_ERROR(lost_and_found_.Finish());
    SILTFS_RETURN_IF_ERROR(edit_.Write());
    return next;
  }
  uint64_t changes() const { return edit_.changes(); }

 private:
  struct Slot {
    uint64_t number = 0;
    uint64_t parent = 0;
    uint64_t seen_in = 0;  // the directory of the name that is kept
    uint32_t links = 0;
    uint32_t names = 0;
    uint32_t type = 0;
    bool orphan = false;
  };

  Result<uint64_t> ReadInodes(uint64_t first) {
    TableCursor orphans(edit_.snapshot(), Table::kOrphan);
    TableCursor inodes(edit_.snapshot(), Table::kInode);
    for (; inodes.inode() != TableCursor::kEnd; inodes.Next()) {
      if (inodes.inode() < first || !inodes.rest().empty()) continue;
      if (slots_.size() >= options_.inodes_a_pass) return inodes.inode();
      const auto record = InodeRecord::Decode(inodes.value());
      if (!record.ok()) continue;
      while (orphans.inode() < inodes.inode()) orphans.Next();
      Slot slot;
      slot.number = inodes.inode();
      slot.parent = record->parent;
      slot.links = record->links;
      slot.type = record->type();
      slot.orphan = orphans.inode() == slot.number;
      slots_.push_back(slot);
    }
    SILTFS_RETURN_IF_ERROR(orphans.status());
    SILTFS_RETURN_IF_ERROR(inodes.status());
    return TableCursor::kEnd;
  }

  Status ReadNames() {
    TableCursor names(edit_.snapshot(), Table::kDirectoryEntry);
    for (; names.inode() != TableCursor::kEnd; names.Next()) {
      auto entry = NameEntry::Decode(names.value());
      if (!entry.ok()) continue;
      const auto slot = std::lower_bound(
          slots_.begin(), slots_.end(), entry->inode,
          [](const Slot& candidate, uint64_t number) { return candidate.number < number; });
      if (slot == slots_.end() || slot->number != entry->inode) continue;
      SILTFS_RETURN_IF_ERROR(Count(*slot, names.inode(), std::string(names.rest()), *entry));
    }
    return names.status();
  }

  Status Count(Slot& slot, uint64_t directory, std::string name, NameEntry entry) {
    const bool second =
        slot.type == kDirectoryType && (slot.names > 0 || slot.number == kRootInode);
    if (second && options_.all) {
      // This directory has a second name. Keep the name that lies in the parent that its inode
      // records. If no name lies there, keep the name that was found first. The root keeps none.
      if (slot.number != kRootInode && slot.parent == directory && slot.seen_in != directory) {
        std::swap(kept_[slot.number], name);
        const uint64_t other = std::exchange(slot.seen_in, directory);
        return RemoveName(other, name);
      }
      return RemoveName(directory, name);
    }
    ++slot.names;
    slot.seen_in = directory;
    if (entry.type != slot.type) {
      entry.type = slot.type;
      edit_.Put(DirectoryEntryKey(directory, name), entry.Encode());
      edit_.Put(DirectoryCookieKey(directory, entry.cookie),
                CookieEntry{entry.inode, entry.type, name}.Encode());
    }
    if (slot.type == kDirectoryType && options_.all) kept_[slot.number] = std::move(name);
    return Status::Ok();
  }

  Status RemoveName(uint64_t directory, const std::string& name) {
    const std::string key = DirectoryEntryKey(directory, name);
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(key));
    edit_.Remove(key);
    if (!value) return Status::Ok();
    const auto entry = NameEntry::Decode(*value);
    if (entry.ok()) edit_.Remove(DirectoryCookieKey(directory, entry->cookie));
    return Status::Ok();
  }

  Status Mend(const Slot& slot) {
    if (slot.number == kRootInode) return Status::Ok();
    uint32_t links = slot.links;
    uint64_t parent = slot.parent;
    bool orphan = slot.orphan;
    const bool directory = slot.type == kDirectoryType;
    if (slot.names > 0) {
      orphan = false;
      if (!directory) links = slot.names;
      if (directory && links == 0) links = 2;  // RepairCounters adds the subdirectories
      if (directory && slot.names == 1) parent = slot.seen_in;
    } else if (options_.all && !(slot.orphan && slot.links == 0)) {
      orphan = false;
      links = directory ? 2 : 1;
      SILTFS_ASSIGN_OR_RETURN(parent, lost_and_found_.TakeIn(slot.number, slot.type));
    }
    if (orphan != slot.orphan) edit_.Remove(OrphanKey(slot.number));
    // For a directory it matters here only whether the number of links is 0. If the number is not
    // 0, RepairCounters counts the links again later.
    const bool same_links = directory ? (links == 0) == (slot.links == 0) : links == slot.links;
    if (same_links && (!directory || parent == slot.parent)) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const auto value, edit_.snapshot().Get(InodeKey(slot.number)));
    if (!value) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(InodeRecord record, InodeRecord::Decode(*value));
    if (!same_links) record.links = links;
    if (directory) record.parent = parent;
    edit_.Put(InodeKey(slot.number), record.Encode());
    return Status::Ok();
  }

  const LinkRepairOptions& options_;
  MetadataEdit edit_;
  LostAndFound lost_and_found_;
  std::vector<Slot> slots_;
  std::map<uint64_t, std::string> kept_;  // kept names of directories
};

}  // namespace

Result<uint64_t> RepairLinks(KvStore& kv, const LinkRepairOptions& options) {
  uint64_t changes = 0;
  for (uint64_t first = 0; first != TableCursor::kEnd;) {
    LinkPass pass(kv, options);
    SILTFS_ASSIGN_OR_RETURN(first, pass.Run(first));
    changes += pass.changes();
  }
  return changes;
}

}  // namespace siltfs
