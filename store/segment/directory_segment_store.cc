#include "store/segment/directory_segment_store.h"

#include <utility>

#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {

DirectorySegmentStore::DirectorySegmentStore(Env& env, std::string store)
    : env_(env), store_(std::move(store)), name_(SegmentsDirectory(store_)) {}

std::string DirectorySegmentStore::NameOf(SegmentId id) const { return SegmentPath(store_, id); }

std::optional<SegmentId> DirectorySegmentStore::IdOf(std::string_view name) const {
  return ParseSegmentFileName(name.substr(name.rfind('/') + 1));
}

Result<std::unique_ptr<const ReadableFile>> DirectorySegmentStore::Open(SegmentId id) {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          env_.OpenFile(SegmentPath(store_, id), {.mode = OpenMode::kRead}));
  return std::unique_ptr<const ReadableFile>(std::move(file));
}

Result<bool> DirectorySegmentStore::Contains(SegmentId id) {
  const auto info = env_.GetFileInfo(SegmentPath(store_, id));
  if (info.ok()) return true;
  if (info.status().Is(StatusCode::kNotFound)) return false;
  return info.status();
}

Result<bool> DirectorySegmentStore::HoldsSame(SegmentId id, const SegmentSource& source) {
  SILTFS_ASSIGN_OR_RETURN(const std::string held, BuiltSegment(env_, store_, id).Read());
  SILTFS_ASSIGN_OR_RETURN(const std::string offered, source.Read());
  return held == offered;
}

Status DirectorySegmentStore::Put(SegmentId id, const SegmentSource& source) {
  const std::string path = SegmentPath(store_, id);
  if (source.path == path) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const bool there, Contains(id));
  if (!there) return Replace(id, source);
  SILTFS_ASSIGN_OR_RETURN(const bool same, HoldsSame(id, source));
  if (!same) {
    return Status(StatusCode::kAlreadyExists, "the segment exists, with another content").At(path);
  }
  return source.Remove();
}

Status DirectorySegmentStore::Replace(SegmentId id, const SegmentSource& source) {
  const std::string path = SegmentPath(store_, id);
  Status renamed = env_.Rename(source.path, path);
  if (renamed.Is(StatusCode::kNotFound) && env_.GetFileInfo(source.path).ok()) {
    SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env_, store_, id));
    renamed = env_.Rename(source.path, path);
  }
  SILTFS_RETURN_IF_ERROR(std::move(renamed));
  const std::string directory = SegmentDirectory(store_, id);
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(directory));
  // If the file was built in another directory, sync that directory, too. Otherwise a power cut
  // could bring the file back under its old name.
  const std::string from = source.path.substr(0, source.path.rfind('/'));
  return from == directory ? Status::Ok() : env_.SyncDirectory(from);
}

Status DirectorySegmentStore::Remove(SegmentId id) {
  Status removed = RemoveSegment(env_, store_, id);
  if (!removed.Is(StatusCode::kNotFound)) return removed;
  // The file was removed, but perhaps not durably.
  removed = env_.SyncDirectory(SegmentDirectory(store_, id));
  if (!removed.Is(StatusCode::kNotFound)) return removed;
  removed.IgnoreError("the directory was removed, too");
  return Status::Ok();
}

Result<SegmentListing> DirectorySegmentStore::List() { return ListSegments(env_, store_); }

Result<SegmentListing> DirectorySegmentStore::Recover() {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing listing, ListSegments(env_, store_));
  for (const std::string& path : listing.temporaries) SILTFS_RETURN_IF_ERROR(env_.RemoveFile(path));
  // A removal or a replacement may not be durable yet. Without these syncs, a later power cut could
  // bring the old file back when metadata no longer expects it.
  for (const std::string& path : listing.directories)
    SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(path));
  return listing;
}

}  // namespace siltfs
