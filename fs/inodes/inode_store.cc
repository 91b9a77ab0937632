#include "fs/inodes/inode_store.h"

#include <fmt/format.h>

#include "fs/content/file_content.h"
#include "fs/records/schema.h"

namespace siltfs {

Attributes AttributesOf(const Inode& inode) {
  const InodeRecord& record = inode.record;
  Attributes attributes;
  attributes.inode = inode.number;
  attributes.mode = record.mode;
  attributes.links = record.links;
  attributes.uid = record.uid;
  attributes.gid = record.gid;
  attributes.device = record.device;
  attributes.size = record.IsSymlink() ? record.target.size() : record.size;
  attributes.allocated_bytes = record.IsRegular() ? FileContent::AllocatedBytes(record) : 0;
  attributes.atime = record.atime;
  attributes.mtime = record.mtime;
  attributes.ctime = record.ctime;
  attributes.btime = record.btime;
  return attributes;
}

Status CheckRegular(const InodeRecord& record) {
  if (record.IsDirectory()) return Status(StatusCode::kIsADirectory, "is a directory");
  if (!record.IsRegular()) return Status(StatusCode::kInvalidArgument, "is not a regular file");
  return Status::Ok();
}

InodeStore::InodeStore(const StoreContext& store, ChangeApplier& changes,
                       OverlayMemory& overlay_memory, size_t cached)
    : store_(store), changes_(changes), overlay_memory_(overlay_memory), table_(cached) {}

void InodeStore::SetLoaded(Inode& inode) {
  inode.loaded = inode.overlay_loaded = true;
  inode.overlay = overlay_memory_.NewOverlay();
  if (inode.record.IsDirectory()) inode.names.emplace();
}

Status InodeStore::LoadAndFlush(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadRecord(inode));
  return inode.deferred ? changes_.SaveLast(inode) : Status::Ok();
}

Status InodeStore::LoadContentAndFlush(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(inode));
  return LoadContent(inode);
}

Status InodeStore::LoadRecord(Inode& inode) {
  if (inode.loaded) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(auto value, store_.metadata().Get(InodeKey(inode.number)));
  if (!value || hidden_.Contains(inode.number))
    return Status(StatusCode::kStale, fmt::format("there is no inode {}", inode.number));
  SILTFS_ASSIGN_OR_RETURN(inode.record, InodeRecord::Decode(*value));
  inode.loaded = true;
  inode.overlay_loaded = !inode.record.has_overlay;
  if (inode.overlay_loaded) inode.overlay = overlay_memory_.NewOverlay();
  return Status::Ok();
}

Status InodeStore::LoadContent(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadRecord(inode));
  if (inode.overlay_loaded) return Status::Ok();
  Overlay overlay = overlay_memory_.NewOverlay();
  Status status;
  const KeyRange range = RangeOf(Table::kOverlay, inode.number);
  Status scanned = store_.metadata().Pin().Scan(
      range.begin, range.end, [&](std::string_view key, std::string_view value) {
        auto parts = ParseNumberedKey(Table::kOverlay, key);
        auto extent = OverlayExtent::Decode(value);
        if (!extent.ok()) {
          status = std::move(extent).status();
        } else if (!parts || parts->number < overlay.end()) {
          status = Status(StatusCode::kCorruption,
                          fmt::format("the overlay of inode {} overlaps itself", inode.number));
        } else if (parts->number > kMaxFileBytes ||
                   extent->length > kMaxFileBytes - parts->number) {
          status = Status(
              StatusCode::kCorruption,
              fmt::format("the overlay of inode {} exceeds the largest file size", inode.number));
        } else {
          overlay.Load(parts->number, std::move(extent).value());
        }
        return status.ok();
      });
  SILTFS_RETURN_IF_ERROR(scanned);
  SILTFS_RETURN_IF_ERROR(status);
  inode.overlay = std::move(overlay);
  inode.overlay_loaded = true;
  return Status::Ok();
}

Status InodeStore::WithLoaded(InodeNumber number, bool overlay,
                              const std::function<Status(const Inode&)>& use) {
  InodePtr inode = Get(number);
  for (;;) {
    {
      InodeLock lock(inode, InodeLock::Mode::kShared);
      if (inode->loaded && (!overlay || inode->overlay_loaded)) return use(*inode);
    }
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    SILTFS_RETURN_IF_ERROR(overlay ? LoadContent(*inode) : LoadRecord(*inode));
  }
}

Result<Attributes> InodeStore::GetAttributes(InodeNumber number) {
  Attributes attributes;
  SILTFS_RETURN_IF_ERROR(WithLoaded(number, false, [&attributes](const Inode& inode) {
    attributes = AttributesOf(inode);
    return Status::Ok();
  }));
  return attributes;
}

}  // namespace siltfs
