#include "fs/check/name_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fs/interface/file_system.h"
#include "fs/open/store_layout.h"
#include "fs/records/directory_entry.h"
#include "fs/records/table_cursor.h"

namespace siltfs {
namespace {

constexpr uint32_t kDirectoryType = 0040000;

}  // namespace

void NameCheck::Say(const char* code, uint64_t inode, std::string message) {
  context_.Report({.code = code,
                   .path = MetadataPath(context_.store()),
                   .inode = inode,
                   .message = std::move(message)});
}

Status NameCheck::Add(uint64_t number, const std::optional<InodeRecord>& record, bool orphan) {
  if (slots_.size() >= context_.options.inodes_a_pass) {
    const uint64_t last = slots_.back().number;
    SILTFS_RETURN_IF_ERROR(Pass(last));
    slots_.clear();
    first_ = last + 1;
  }
  Slot slot;
  slot.number = number;
  slot.known = record.has_value();
  slot.orphan = orphan;
  if (record) {
    slot.parent = record->parent;
    slot.links = record->links;
    slot.type = record->type();
  }
  slots_.push_back(slot);
  return Status::Ok();
}

Status NameCheck::Finish() { return Pass(std::numeric_limits<uint64_t>::max()); }

Status NameCheck::Pass(uint64_t last) {
  uint64_t done = 0;
  TableCursor names(snapshot_, Table::kDirectoryEntry);
  for (; names.inode() != TableCursor::kEnd; names.Next()) {
    // The names in hidden directories lead to hidden inodes, which have no slots.
    if (!live_ || !context_.IsHidden(names.inode()))
      CountName(names.inode(), names.rest(), names.value(), last);
    if (++done % 1024 == 0) SILTFS_RETURN_IF_ERROR(context_.Continue());
  }
  SILTFS_RETURN_IF_ERROR(names.status());
  for (const Slot& slot : slots_) Judge(slot);
  return Status::Ok();
}

void NameCheck::CountName(uint64_t directory, std::string_view name, std::string_view value,
                          uint64_t last) {
  const auto entry = NameEntry::Decode(value);
  if (!entry.ok() || entry->inode < first_ || entry->inode > last) return;
  const auto slot = std::lower_bound(
      slots_.begin(), slots_.end(), entry->inode,
      [](const Slot& candidate, uint64_t number) { return candidate.number < number; });
  if (slot == slots_.end() || slot->number != entry->inode) {
    return Say("dangling-name", directory,
               fmt::format("the name \"{}\" in the directory leads to inode {}, which is missing",
                           name, entry->inode));
  }
  ++slot->names;
  slot->seen_in = directory;
  if (slot->known && slot->type != entry->type) {
    Say("name-type", entry->inode,
        fmt::format("the inode is of type {:o}, its name \"{}\" says {:o}", slot->type, name,
                    entry->type));
  }
}

void NameCheck::Judge(const Slot& slot) {
  if (!slot.known) return;
  const bool directory = slot.type == kDirectoryType;
  if (slot.number == kRootInode) {
    if (!directory || slot.names > 0 || slot.parent != kRootInode || slot.links == 0)
      Say("root", slot.number, "the root is not a directory without a name that is its own parent");
    return;
  }
  if (slot.names == 0) {
    // An orphan has no names. InodeCheck checks that its record has no links, either.
    if (slot.links > 0 && !slot.orphan)
      Say("unreachable", slot.number, "no name leads to the inode");
    return;
  }
  if (!directory) {
    if (slot.names != slot.links) {
      Say("link-count", slot.number,
          fmt::format("the inode has {} names, but its record says {}", slot.names, slot.links));
    }
    return;
  }
  if (slot.names > 1 || slot.links == 0) {
    Say("link-count", slot.number,
        fmt::format("the directory has {} names and should have {}", slot.names,
                    slot.links == 0 ? 0 : 1));
  } else if (slot.parent != slot.seen_in) {
    Say("parent", slot.number,
        fmt::format("the directory says that its parent is {}, but its name is in {}", slot.parent,
                    slot.seen_in));
  }
}

}  // namespace siltfs
