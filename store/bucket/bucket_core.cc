#include "store/bucket/bucket_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/base/size_text.h"
#include "store/bucket/bucket_retry.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// The same failure, at another place.
Status Moved(const Status& status, const std::string& name) {
  return Status(status.code(), std::string(status.cause())).At(name);
}

}  // namespace

BucketCore::BucketCore(Env& env, ObjectStore& objects, BucketOptions options)
    : env_(env),
      objects_(objects),
      options_(std::move(options)),
      name_(objects.name() + "/segments"),
      cache_(env, options_.directory, {options_.cache_bytes, options_.cache_files}),
      fetcher_(objects, cache_, stop_,
               {options_.fetch_threads, std::max(options_.most_gets, 1U), options_.bucket_timeout}),
      uploader_(objects, cache_, fetcher_, stop_, {options_.upload_threads, options_.gate},
                [this](const ContentId&) { remover_.Wake(); }),
      remover_(env, objects, stop_,
               {options_.directory, options_.upload_threads > 0, options_.gate},
               [this](const ContentId& id) { return InUse(id); }) {}

std::string BucketCore::NameOf(SegmentId id) const {
  return objects_.name() + "/" + SegmentObjectStem(id);
}

uint64_t BucketCore::Position() const {
  return options_.gate == nullptr ? 0 : options_.gate->Position();
}

// --- The start.

Status BucketCore::Load() {
  MutexLock load_lock(load_mutex_);
  if (loaded_) return Status::Ok();
  auto loaded =
      LoadBucketCatalog(env_, objects_, stop_, options_.directory, options_.bucket_timeout);
  if (!loaded.ok()) {
    const Status& failed = loaded.status();
    return failed.path().empty() ? Moved(failed, name_) : failed;
  }
  left_ = std::move(loaded).value();
  for (const WaitingContent& waiting : left_.waiting) cache_.AdoptWaiting(waiting.content);
  for (const BucketCatalog::Image& image : left_.images)
    cache_.AdoptImage(image.content, image.bytes);
  left_.images = {};
  MutexLock lock(mutex_);
  table_ = std::move(left_.table);
  strays_ = std::move(left_.strays);
  was_empty_ = left_.is_empty;
  left_waiting_ = left_.waiting.size();
  for (const WaitingContent& waiting : left_.waiting) left_waiting_bytes_ += waiting.content.size;
  next_generation_ =
      std::max(left_.last_generation + 1, (uint64_t{options_.epoch} << kEpochShift) + 1);
  loaded_ = true;
  return Status::Ok();
}

Status BucketCore::Resume() {
  SILTFS_RETURN_IF_ERROR(Load());
  MutexLock load_lock(load_mutex_);
  if (resumed_) return Status::Ok();
  const std::string files = FilesDirectory(options_.directory);
  const std::string removed = RemovedDirectory(options_.directory);
  SILTFS_RETURN_IF_ERROR(
      CreateDirectoryDurably(env_, ParentOf(options_.directory), options_.directory));
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, options_.directory, files));
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, options_.directory, removed));
  // The contents and tombstones that were found must not disappear again after older contents have
  // been deleted because of them.
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(files));
  SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(removed));
  for (const std::string& path : left_.old_files) {
    const Status gone = env_.RemoveFile(path);
    if (!gone.ok() && !gone.Is(StatusCode::kNotFound)) return gone;
  }
  if (options_.read_only) {
    left_ = {};
    resumed_ = true;
    return Status::Ok();
  }
  const uint64_t position = Position();
  for (const WaitingContent& waiting : left_.waiting) {
    uploader_.Add(waiting.content, waiting.may_exist,
                  waiting.replaces ? std::optional(position) : std::nullopt);
  }
  // A removal that was made before this start keeps its own position.
  for (const Tombstone& tombstone : left_.tombstones)
    remover_.Add(tombstone.id, tombstone.position);
  for (const ContentId& id : left_.old_objects) remover_.Add(id, position);
  for (const Tombstone& tombstone : left_.tombstones) remover_.AddTombstone(tombstone);
  left_ = {};
  resumed_ = true;
  MutexLock lock(mutex_);
  left_waiting_ = left_waiting_bytes_ = 0;
  return Status::Ok();
}

Status BucketCore::PrepareChange() {
  if (options_.read_only) return Status(StatusCode::kReadOnly, "is open for reading").At(name_);
  SILTFS_RETURN_IF_ERROR(Resume());
  MutexLock lock(mutex_);
  if (next_generation_ >> kEpochShift == options_.epoch) return Status::Ok();
  return Status(StatusCode::kStale,
                fmt::format("another writer has the bucket now, with the epoch {}; this one has {}",
                            next_generation_ >> kEpochShift, options_.epoch))
      .At(name_);
}

// --- Readers.

std::optional<SegmentContent> BucketCore::Find(SegmentId id) const {
  MutexLock lock(mutex_);
  return table_.Find(id);
}

bool BucketCore::HasReaders(const ContentId& id) const {
  MutexLock lock(mutex_);
  return readers_.contains(id);
}

// An object stays as long as it has readers, and until the content that took its place is uploaded.
bool BucketCore::InUse(const ContentId& id) const {
  return HasReaders(id) || uploader_.HoldsSegment(id.segment);
}

Result<SegmentContent> BucketCore::AddReader(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(Load());
  MutexLock lock(mutex_);
  const auto content = table_.Find(id);
  if (!content) return Status(StatusCode::kNotFound, "there is no such segment").At(NameOf(id));
  ++readers_[content->id];
  return *content;
}

void BucketCore::AddReaderOf(const ContentId& id) {
  MutexLock lock(mutex_);
  ++readers_[id];
}

void BucketCore::RemoveReader(const ContentId& id) {
  {
    MutexLock lock(mutex_);
    const auto found = readers_.find(id);
    if (--found->second > 0) return;
    readers_.erase(found);
    if (retired_.erase(id) == 0) return;
  }
  cache_.Drop(id).IgnoreError("the next start removes the file");
  remover_.Wake();
}

// --- The contents that another machine puts.

Result<std::vector<SegmentContent>> BucketCore::ContentsOf(SegmentId id) {
  // One segment has a few contents at most, so one page has them.
  constexpr size_t kMostContents = 1000;
  std::vector<SegmentContent> contents;
  SILTFS_ASSIGN_OR_RETURN(const ObjectPage page,
                          objects_.List(SegmentObjectStem(id) + "-", "", kMostContents));
  for (const ObjectInfo& object : page.objects) {
    const auto content = ParseSegmentObjectKey(object.key);
    const auto size = SegmentBytes(object.size);
    if (content && size && content->segment == id) contents.push_back({*content, *size});
  }
  std::ranges::sort(contents, std::ranges::greater(),
                    [](const SegmentContent& one) { return one.id.generation; });
  return contents;
}

void BucketCore::Adopt(const SegmentContent& content) {
  std::optional<SegmentContent> old;
  {
    MutexLock lock(mutex_);
    old = table_.Find(content.id.segment);
    table_.Set(content);
  }
  if (old && old->id != content.id) Retire(old->id, Uploader::Sent::kNever, 0);
}

void BucketCore::Release(SegmentId id) {
  std::optional<SegmentContent> old;
  {
    MutexLock lock(mutex_);
    old = table_.Find(id);
    table_.Erase(id);
  }
  if (old) Retire(old->id, Uploader::Sent::kNever, 0);
}

// --- Changes.

Result<uint32_t> BucketCore::SizeOf(SegmentId id, const SegmentSource& source) const {
  SILTFS_ASSIGN_OR_RETURN(const FileInfo info, env_.GetFileInfo(source.path));
  if (info.size <= kMostObjectSegmentBytes) return static_cast<uint32_t>(info.size);
  return Status(StatusCode::kFileTooLarge, "the segment is too large for an object").At(NameOf(id));
}

Result<bool> BucketCore::IsSame(const SegmentContent& held, const SegmentSource& source) {
  SILTFS_ASSIGN_OR_RETURN(const uint32_t size, SizeOf(held.id.segment, source));
  if (size != held.size) return false;
  SILTFS_ASSIGN_OR_RETURN(const auto file, source.Open());
  SILTFS_ASSIGN_OR_RETURN(const auto offered, BlockChecksums::Compute(held, *file));
  const auto waiting = cache_.OpenWaiting(held.id);
  if (waiting.ok()) {
    SILTFS_ASSIGN_OR_RETURN(const auto ours, BlockChecksums::Compute(held, **waiting));
    return ours == offered;
  }
  if (!waiting.status().Is(StatusCode::kNotFound)) return waiting.status();
  const auto ours = fetcher_.Checksums(held);
  if (!ours.ok()) return Moved(ours.status(), NameOf(held.id.segment));
  return **ours == offered;
}

Status BucketCore::Reserve(SegmentId id, uint32_t size) {
  const Status room = cache_.Reserve(size, options_.room_timeout);
  if (room.ok()) return Status::Ok();
  std::string cause(room.cause());
  if (room.Is(StatusCode::kNoSpace)) {
    cause = fmt::format("the cache of {} is full of segments that the bucket does not have: {}",
                        FormatSize(options_.cache_bytes), DescribeUploads(uploader_.GetStatus()));
  }
  return Status(room.code(), std::move(cause)).At(NameOf(id));
}

Result<ContentId> BucketCore::NewContent(SegmentId id) {
  MutexLock lock(mutex_);
  return ContentId{id, next_generation_++};
}

Result<std::optional<SegmentContent>> BucketCore::TakeOver(const SegmentContent& content,
                                                           const SegmentSource& source) {
  // Open finds the segment at each moment: its caller looks at the source first, and then waits for
  // this lock.
  MutexLock lock(mutex_);
  SILTFS_RETURN_IF_ERROR(env_.Rename(
      source.path, LocalFilePath(options_.directory, content, LocalFileKind::kWaiting)));
  cache_.AddWaiting(content);
  const auto old = table_.Find(content.id.segment);
  table_.Set(content);
  return old;
}

Status BucketCore::Put(SegmentId id, const SegmentSource& source, bool must_match) {
  SILTFS_RETURN_IF_ERROR(PrepareChange());
  if (const auto held = Find(id); held && must_match) {
    SILTFS_ASSIGN_OR_RETURN(const bool same, IsSame(*held, source));
    if (same) return source.Remove();
    return Status(StatusCode::kAlreadyExists, "the segment exists, with another content")
        .At(NameOf(id));
  }
  SILTFS_ASSIGN_OR_RETURN(const uint32_t size, SizeOf(id, source));
  SILTFS_RETURN_IF_ERROR(Reserve(id, size));
  SILTFS_ASSIGN_OR_RETURN(const ContentId content_id, NewContent(id));
  const SegmentContent content{content_id, size};
  auto old = TakeOver(content, source);
  if (!old.ok()) {
    cache_.Unreserve(size);
    return old.status();
  }
  const std::string files = FilesDirectory(options_.directory);
  SILTFS_RETURN_IF_ERROR(SyncNames(env_, files));
  // Otherwise a power cut could bring the file back under its old name.
  SILTFS_RETURN_IF_ERROR(SyncNames(env_, ParentOf(source.path)));
  if (!*old) {
    uploader_.Add(content, /*may_exist=*/false, std::nullopt);
    return Status::Ok();
  }
  const uint64_t position = Position();
  const Uploader::Sent sent = uploader_.Cancel((*old)->id, /*wait=*/true);
  uploader_.Add(content, /*may_exist=*/false,
                sent == Uploader::Sent::kYes ? std::optional(position) : std::nullopt);
  Retire((*old)->id, sent, position);
  return Status::Ok();
}

void BucketCore::Retire(const ContentId& id, Uploader::Sent sent, uint64_t position) {
  bool has_readers = false;
  {
    MutexLock lock(mutex_);
    has_readers = readers_.contains(id);
    if (has_readers) retired_.insert(id);
  }
  const Status dropped = has_readers ? cache_.Detach(id) : cache_.Drop(id);
  dropped.IgnoreError("the next start removes the file");
  if (sent != Uploader::Sent::kNever) remover_.Add(id, position);
}

Status BucketCore::Remove(SegmentId id) {
  SILTFS_RETURN_IF_ERROR(PrepareChange());
  const std::string removed = RemovedDirectory(options_.directory);
  const auto held = Find(id);
  if (!held) {
    SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(removed));
    return env_.SyncDirectory(FilesDirectory(options_.directory));
  }
  const Tombstone tombstone{held->id, Position()};
  const auto made =
      env_.OpenFile(TombstonePath(options_.directory, tombstone), {.mode = OpenMode::kCreate});
  if (!made.ok() && !made.status().Is(StatusCode::kAlreadyExists)) return made.status();
  SILTFS_RETURN_IF_ERROR(SyncNames(env_, removed));
  {
    MutexLock lock(mutex_);
    table_.Erase(id);
  }
  Retire(held->id, uploader_.Cancel(held->id, /*wait=*/false), tombstone.position);
  remover_.AddTombstone(tombstone);
  return Status::Ok();
}

Result<SegmentListing> BucketCore::List() {
  SILTFS_RETURN_IF_ERROR(Load());
  MutexLock lock(mutex_);
  SegmentListing listing;
  listing.ids.reserve(table_.size());
  table_.Visit([&](const SegmentContent& content) { listing.ids.push_back(content.id.segment); });
  if (!was_empty_ || table_.size() > 0) listing.directories.push_back(name_);
  listing.strays = strays_;
  return listing;
}

// --- The background.

Status BucketCore::WaitForUploads(std::chrono::nanoseconds timeout) {
  SILTFS_RETURN_IF_ERROR(Resume());
  const Status waited = uploader_.WaitForUploads(timeout);
  return waited.ok() ? Status::Ok() : Moved(waited, name_);
}

bool BucketCore::IsUploaded(SegmentId id) {
  // Before the table is known, a content that waits for its upload would look like none.
  if (const Status loaded = Load(); !loaded.ok()) return false;
  const auto content = Find(id);
  return !content || cache_.OpenWaiting(content->id).status().Is(StatusCode::kNotFound);
}

void BucketCore::GateMoved() {
  uploader_.Wake();
  remover_.Wake();
}

Status BucketCore::RunBackground() {
  SILTFS_RETURN_IF_ERROR(Resume());
  for (uint64_t left = uploader_.GetStatus().waiting; left > 0 && uploader_.RunOne(); --left) {
  }
  return remover_.RunOnce();
}

void BucketCore::Interrupt() {
  stop_.Stop();
  cache_.Close();
}

void BucketCore::Close() {
  Interrupt();
  fetcher_.Stop();
  uploader_.Stop();
  remover_.Stop();
}

BucketStatus BucketCore::GetStatus() const {
  BucketStatus status;
  status.uploads = uploader_.GetStatus();
  {
    MutexLock lock(mutex_);
    status.segments = table_.size();
    status.segment_bytes = table_.bytes();
    // A store that only reads never gives them to the uploader.
    status.uploads.waiting += left_waiting_;
    status.uploads.waiting_bytes += left_waiting_bytes_;
  }
  status.cache = cache_.Counters();
  status.deletions_waiting = remover_.waiting();
  status.deleted = remover_.removed();
  return status;
}

}  // namespace siltfs
