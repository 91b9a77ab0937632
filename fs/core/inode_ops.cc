// Loading, saving and removing inodes.
#include <fmt/format.h>

#include "fs/core/file_system_impl.h"
#include "fs/meta/schema.h"

namespace siltfs {

ContentTally::ContentTally(const InodeRecord& record)
    : allocated(static_cast<int64_t>(FileContent::AllocatedBytes(record))),
      references(static_cast<int64_t>(FileContent::ChunkReferences(record))) {}

Status FileSystemImpl::LoadAndFlush(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadRecord(inode));
  return inode.deferred ? SaveLast(inode) : Status::Ok();
}

Status FileSystemImpl::LoadContentAndFlush(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadAndFlush(inode));
  return LoadContent(inode);
}

Status FileSystemImpl::LoadRecord(Inode& inode) {
  if (inode.loaded) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(auto value, metadata_->Get(InodeKey(inode.number)));
  if (!value) return Status(StatusCode::kStale, fmt::format("there is no inode {}", inode.number));
  SILTFS_ASSIGN_OR_RETURN(inode.record, InodeRecord::Decode(*value));
  inode.loaded = true;
  inode.overlay_loaded = !inode.record.has_overlay;
  if (inode.overlay_loaded) inode.overlay = Overlay(&overlay_raw_bytes_);
  return Status::Ok();
}

Status FileSystemImpl::LoadContent(Inode& inode) {
  SILTFS_RETURN_IF_ERROR(LoadRecord(inode));
  if (inode.overlay_loaded) return Status::Ok();
  Overlay overlay(&overlay_raw_bytes_);
  Status status;
  const KeyRange range = RangeOf(Table::kOverlay, inode.number);
  Status scanned = metadata_->Pin().Scan(
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

Status FileSystemImpl::WithLoaded(InodeNumber number, bool overlay,
                                  const std::function<Status(const Inode&)>& use) {
  InodePtr inode = inodes_.Get(number);
  for (;;) {
    {
      InodeLock lock(inode, InodeLock::Mode::kShared);
      if (inode->loaded && (!overlay || inode->overlay_loaded)) return use(*inode);
    }
    InodeLock lock(inode, InodeLock::Mode::kExclusive);
    SILTFS_RETURN_IF_ERROR(overlay ? LoadContent(*inode) : LoadRecord(*inode));
  }
}

Attributes FileSystemImpl::AttributesOf(const Inode& inode) {
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

void FileSystemImpl::Save(Inode& inode, Change& change) const {
  change.Put(InodeKey(inode.number), inode.record.Encode());
  change.inodes.push_back(&inode);
}

void FileSystemImpl::SaveContent(Inode& inode, const ContentTally& before, Change& change) const {
  inode.overlay.Describe(inode.record);
  inode.overlay.TakeMutations(inode.number, change.mutations);
  Save(inode, change);
  const ContentTally& saved = inode.deferred ? inode.deferred->before : before;
  const ContentTally after(inode.record);
  change.Count(Counter::kLogicalBytes, after.allocated - saved.allocated);
  change.Count(Counter::kChunkReferences, after.references - saved.references);
}

Status FileSystemImpl::Apply(Change& change) {
  if (change.commit) {
    SILTFS_RETURN_IF_ERROR(
        metadata_->ApplyTo(*change.commit, std::move(change.mutations), change.differences));
  } else {
    SILTFS_ASSIGN_OR_RETURN(change.commit,
                            metadata_->Apply(std::move(change.mutations), change.differences));
  }
  change.applied = true;
  const int64_t grown = change.differences[static_cast<size_t>(Counter::kLogicalBytes)];
  if (grown < 0) chunks_->NoteReleased(static_cast<uint64_t>(-grown));
  for (Inode* inode : change.inodes) {
    inode->last_apply = *change.commit;
    if (inode->deferred) ForgetDeferred(*inode);
  }
  return Status::Ok();
}

Status FileSystemImpl::DeleteInode(Inode& inode, Change& change) {
  change.inodes.push_back(&inode);
  SILTFS_RETURN_IF_ERROR(LoadContentAndFlush(inode));
  InodeRecord& record = inode.record;
  const ContentTally before(record);
  if (record.IsRegular()) {
    inode.overlay.Erase(0, inode.overlay.end());
    inode.overlay.TakeMutations(inode.number, change.mutations);
    change.Count(Counter::kLogicalBytes, -before.allocated);
    change.Count(Counter::kChunkReferences, -before.references);
  }
  if (record.xattrs > 0) {
    const KeyRange range = RangeOf(Table::kXattr, inode.number);
    SILTFS_RETURN_IF_ERROR(
        metadata_->Pin().Scan(range.begin, range.end, [&](std::string_view key, std::string_view) {
          change.Delete(std::string(key));
          return true;
        }));
  }
  change.Count(record.IsDirectory() ? Counter::kDirectories : Counter::kFiles, -1);
  change.Delete(InodeKey(inode.number));
  return Status::Ok();
}

bool FileSystemImpl::IsOrphan(InodeNumber number) const {
  MutexLock lock(orphans_mutex_);
  return orphans_.contains(number);
}

void FileSystemImpl::SetOrphan(InodeNumber number, bool orphan) {
  MutexLock lock(orphans_mutex_);
  if (orphan) {
    orphans_.insert(number);
  } else {
    orphans_.erase(number);
  }
}

void FileSystemImpl::RemoveIfUnused(InodeNumber number) {
  if (!IsOrphan(number) || lookups_.Of(number) > 0 || options_.read_only) return;
  // After a failure the orphan's key stays, and the next mount tries again.
  if (!metadata_->WaitForRoom().ok()) return;
  InodePtr inode = inodes_.Get(number);
  InodeLock lock(inode, InodeLock::Mode::kExclusive);
  if (!IsOrphan(number) || lookups_.Of(number) > 0 || inode->open_count > 0) return;
  Change change;
  Status status = LoadAndFlush(*inode);
  if (status.ok() && inode->record.links > 0) return;
  if (status.ok()) status = DeleteInode(*inode, change);
  if (status.ok()) {
    change.Delete(OrphanKey(number));
    status = Apply(change);
  }
  if (!status.ok()) return;
  inode->Invalidate();
  SetOrphan(number, false);
  inodes_.Erase(number);
}

Status FileSystemImpl::RemoveOrphans() {
  std::vector<InodeNumber> found;
  const KeyRange range = RangeOf(Table::kOrphan);
  SILTFS_RETURN_IF_ERROR(
      metadata_->Pin().Scan(range.begin, range.end, [&](std::string_view key, std::string_view) {
        if (auto number = ParseInodeKey(Table::kOrphan, key)) found.push_back(*number);
        return true;
      }));
  for (InodeNumber number : found) {
    SetOrphan(number, true);
    RemoveIfUnused(number);
  }
  return Status::Ok();
}

Status FileSystemImpl::CheckWritable() const {
  if (options_.read_only)
    return Status(StatusCode::kReadOnly, "is mounted read-only").At(options_.store);
  // Metadata learns of the failure with the next commit; changes until then would be lost.
  return chunks_->failure();
}

}  // namespace siltfs
