#include "fs/follow/followed_segments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fs/shipping/object_keys.h"
#include "fs/shipping/segment_tails.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

constexpr size_t kCopyBytes = 1u << 20;

Status Lacks(const ObjectStore& objects, SegmentId id, uint64_t have, uint64_t length) {
  return Status(StatusCode::kNotFound,
                fmt::format("the bucket has {} of {} bytes of segment {}", have, length, id))
      .At(objects.name());
}

}  // namespace

// --- SegmentView.

void SegmentView::Freeze(const SegmentContent& content) {
  const MutexLock lock(mutex_);
  frozen_.try_emplace(content.id.segment, content);
}

Result<std::unique_ptr<const ReadableFile>> SegmentView::Open(SegmentId id) {
  {
    const MutexLock lock(mutex_);
    const auto frozen = frozen_.find(id);
    if (frozen != frozen_.end()) return bucket_.OpenContent(frozen->second);
  }
  auto local = local_.Open(id);
  if (!local.status().Is(StatusCode::kNotFound)) return local;
  return bucket_.Open(id);
}

Result<SegmentListing> SegmentView::List() {
  SILTFS_ASSIGN_OR_RETURN(SegmentListing listing, bucket_.List());
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing local, local_.List());
  listing.ids.insert(listing.ids.end(), local.ids.begin(), local.ids.end());
  std::ranges::sort(listing.ids);
  listing.ids.erase(std::unique(listing.ids.begin(), listing.ids.end()), listing.ids.end());
  return listing;
}

Status SegmentView::ReadOnly() const {
  return Status(StatusCode::kReadOnly, "the segments belong to a writer on another machine")
      .At(name());
}
Status SegmentView::Put(SegmentId /*id*/, const SegmentSource& /*source*/) { return ReadOnly(); }
Status SegmentView::Replace(SegmentId /*id*/, const SegmentSource& /*source*/) {
  return ReadOnly();
}
Status SegmentView::Remove(SegmentId /*id*/) { return ReadOnly(); }

// --- FollowedSegments.

FollowedSegments::FollowedSegments(Env& env, ObjectStore& objects, std::string directory,
                                   BucketSegmentStore& bucket)
    : env_(env),
      objects_(objects),
      directory_(std::move(directory)),
      bucket_(bucket),
      local_(env, directory_) {}

Status FollowedSegments::Begin() {
  SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env_, directory_));
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing left, ListSegments(env_, directory_));
  for (const SegmentId id : left.ids) SILTFS_RETURN_IF_ERROR(RemoveSegment(env_, directory_, id));
  return bucket_.Recover().status();
}

Status FollowedSegments::Bring(SegmentId id, const SegmentRecord& record, uint32_t epoch) {
  if (record.sealed) return BringSealed(id, record, epoch);
  return BringLocal(id, record.length, epoch);
}

// The length tells the contents of a segment apart: the bucket may have one that metadata does not
// know yet, or one that a writer that was fenced has put.
Status FollowedSegments::BringSealed(SegmentId id, const SegmentRecord& record, uint32_t epoch) {
  switches_.erase(id);
  const auto current = bucket_.Current(id);
  const bool is_local = local_sizes_.contains(id);
  if (current && current->size == record.length) {
    if (is_local) uploaded_.push_back(id);
    return Status::Ok();
  }
  SILTFS_ASSIGN_OR_RETURN(const auto contents, bucket_.ContentsOf(id));
  const auto right = std::ranges::find(contents, record.length, &SegmentContent::size);
  if (right == contents.end()) {
    // The writer has not uploaded it yet, or the record has changed since.
    return record.recompressed ? Lacks(objects_, id, 0, record.length)
                               : BringLocal(id, record.length, epoch);
  }
  if (current || (is_local && record.recompressed)) {
    if (!current) {  // the local file is replaced before its object became the current content
      const auto old = std::ranges::find(contents, local_sizes_[id], &SegmentContent::size);
      if (old != contents.end()) bucket_.Adopt(*old);
    }
    switches_[id] = *right;
  } else {
    bucket_.Adopt(*right);
  }
  if (is_local) uploaded_.push_back(id);
  return Status::Ok();
}

Status FollowedSegments::BringLocal(SegmentId id, uint64_t length, uint32_t epoch) {
  const auto known = local_sizes_.find(id);
  if (known != local_sizes_.end() && known->second >= length) return Status::Ok();
  std::unique_ptr<File> file;
  const std::string path = SegmentPath(directory_, id);
  if (known == local_sizes_.end()) {
    SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env_, directory_, id));
    const Status removed = env_.RemoveFile(path);
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    SILTFS_ASSIGN_OR_RETURN(file, env_.OpenFile(path, {.mode = OpenMode::kCreate}));
    local_sizes_[id] = 0;
  } else {
    SILTFS_ASSIGN_OR_RETURN(file, env_.OpenFile(path, {.mode = OpenMode::kReadWrite}));
  }
  SILTFS_RETURN_IF_ERROR(ExtendFromTails(id, *file, length, epoch));
  if (local_sizes_[id] < length) SILTFS_RETURN_IF_ERROR(ExtendFromObject(id, *file, length));
  return local_sizes_[id] >= length ? Status::Ok() : Lacks(objects_, id, local_sizes_[id], length);
}

// Each epoch puts the open segments from the beginning, so the tails of another epoch than the last
// time continue the file, too: both have the same committed bytes.
Status FollowedSegments::ExtendFromTails(SegmentId id, File& file, uint64_t length,
                                         uint32_t epoch) {
  std::vector<uint64_t> offsets;
  SILTFS_RETURN_IF_ERROR(ForEachObject(objects_, fmt::format("{}{:08x}/", TailPrefix(epoch), id),
                                       [&](const ObjectInfo& info) {
                                         if (const auto name = ParseTailKey(info.key))
                                           offsets.push_back(name->offset);
                                         return Status::Ok();
                                       }));
  uint64_t& size = local_sizes_[id];
  for (size_t i = 0; i < offsets.size() && size < length; ++i) {
    if (offsets[i] > size) break;
    if (i + 1 < offsets.size() && offsets[i + 1] <= size) continue;  // the next one begins earlier
    const TailName name{epoch, id, offsets[i]};
    const auto object = objects_.Get(TailKey(name), kMostTailObject, nullptr);
    if (object.status().Is(StatusCode::kNotFound)) break;  // the bucket has the object by now
    SILTFS_RETURN_IF_ERROR(object.status());
    SILTFS_ASSIGN_OR_RETURN(const std::string bytes, DecodeTail(name, *object));
    if (name.offset + bytes.size() <= size) continue;
    const uint64_t skip = size - name.offset;
    const uint64_t take = std::min<uint64_t>(bytes.size() - skip, length - size);
    SILTFS_RETURN_IF_ERROR(file.Write(size, AsBytes(bytes).subspan(skip, take)));
    size += take;
  }
  return Status::Ok();
}

// The object of the segment begins with the same bytes, unless it is a replacement: the first
// content that the last writer has put.
Status FollowedSegments::ExtendFromObject(SegmentId id, File& file, uint64_t length) {
  SILTFS_ASSIGN_OR_RETURN(const auto contents, bucket_.ContentsOf(id));
  if (contents.empty()) return Status::Ok();
  const uint32_t last_epoch = contents.front().id.epoch();
  SegmentContent first = contents.front();
  for (const SegmentContent& content : contents) {
    if (content.id.epoch() == last_epoch) first = content;
  }
  if (first.size < length) return Status::Ok();
  const auto reader = bucket_.OpenContent(first);
  uint64_t& size = local_sizes_[id];
  while (size < length) {
    Bytes bytes(std::min<uint64_t>(kCopyBytes, length - size));
    SILTFS_RETURN_IF_ERROR(ReadExactly(*reader, size, bytes));
    SILTFS_RETURN_IF_ERROR(file.Write(size, bytes));
    size += bytes.size();
  }
  return Status::Ok();
}

Status FollowedSegments::RemoveLocal(SegmentId id) {
  if (local_sizes_.erase(id) == 0) return Status::Ok();
  const Status removed = env_.RemoveFile(SegmentPath(directory_, id));
  return removed.Is(StatusCode::kNotFound) ? Status::Ok() : removed;
}

Status FollowedSegments::Commit() {
  std::erase_if(views_, [](const auto& view) { return view.expired(); });
  for (const auto& [id, content] : switches_) {
    const auto old = bucket_.Current(id);
    for (const auto& weak : views_) {
      const auto view = weak.lock();
      if (view && old) view->Freeze(*old);
    }
    bucket_.Adopt(content);
  }
  switches_.clear();
  for (const SegmentId id : uploaded_) SILTFS_RETURN_IF_ERROR(RemoveLocal(id));
  uploaded_.clear();
  return Status::Ok();
}

std::shared_ptr<SegmentView> FollowedSegments::NewView() {
  auto view = std::make_shared<SegmentView>(local_, bucket_);
  views_.push_back(view);
  return view;
}

Status FollowedSegments::Forget(SegmentId id) {
  bucket_.Release(id);
  return RemoveLocal(id);
}

uint64_t FollowedSegments::local_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [id, size] : local_sizes_) bytes += size;
  return bytes;
}

}  // namespace siltfs
