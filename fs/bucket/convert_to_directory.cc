// ConvertToDirectory: downloads and verifies the segments of a store, and then changes its
// superblock.
//
// Segments are collected in STORE/bucket.pull, in files whose names have the generation of the
// content. So a mount between two calls neither sees them nor is changed by them, and the next call
// knows which of them are still current. They move to STORE/segments when all are there. A store in
// a bucket may have sealed segments there, as if their Put had been interrupted.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/conversion_steps.h"
#include "fs/bucket/object_blocks.h"
#include "fs/bucket/parallel_steps.h"
#include "fs/open/store_layout.h"
#include "store/base/size_text.h"
#include "store/bucket/bucket_catalog.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_object.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// Directories and other files, besides the segments.
constexpr uint64_t kOtherRoom = uint64_t{16} << 20;

// The name of a segment that was downloaded as a whole.
std::string PulledName(const SegmentContent& content) {
  const std::string path = LocalFilePath("", content, LocalFileKind::kImage);
  return path.substr(path.rfind('/') + 1);
}

class ToDirectory {
 public:
  ToDirectory(Env& env, ObjectStore& objects, const ConversionOptions& options)
      : env_(env),
        objects_(objects),
        options_(options),
        store_(options.store),
        pulled_(BucketPullPath(store_)) {}

  Result<Conversion> Run() {
    SILTFS_ASSIGN_OR_RETURN(const ClosedStore closed,
                            LockClosedStore(env_, store_, /*wanted_in_bucket=*/false));
    if (!closed.state.superblock.in_bucket()) {
      SILTFS_RETURN_IF_ERROR(ForgetBucketLocked(env_, store_));
      return Conversion{};
    }
    SILTFS_RETURN_IF_ERROR(CheckBucket(closed.state.superblock.uuid));
    SILTFS_ASSIGN_OR_RETURN(catalog_, ListForConversion(env_, objects_, stop_, store_));
    SILTFS_RETURN_IF_ERROR(CollectSegments(closed.records.segments));
    SILTFS_RETURN_IF_ERROR(PrepareDirectory());
    SILTFS_RETURN_IF_ERROR(CheckRoom());
    SILTFS_RETURN_IF_ERROR(Download());
    SILTFS_RETURN_IF_ERROR(MoveAll());
    SILTFS_RETURN_IF_ERROR(CheckAll(closed.records.segments));
    SILTFS_RETURN_IF_ERROR(WritePlace(env_, store_, closed.state, /*in_bucket=*/false));
    SILTFS_RETURN_IF_ERROR(ForgetBucketLocked(env_, store_));
    done_.converted = true;
    done_.moved_segments = moved_segments_;
    done_.moved_bytes = moved_bytes_;
    return done_;
  }

  StopSignal& stop() { return stop_; }

 private:
  Status Damaged(SegmentId id, const std::string& how) const {
    return Status(StatusCode::kCorruption,
                  fmt::format("{}, so the store cannot leave its bucket: see siltfs bucket verify, "
                              "and repair the store with siltfs fsck -y",
                              how))
        .At(objects_.name() + "/" + SegmentObjectStem(id));
  }

  Status CheckBucket(const StoreUuid& uuid) {
    SILTFS_RETURN_IF_ERROR(CheckBucketOwner(objects_, uuid));
    SILTFS_ASSIGN_OR_RETURN(const LogEnd end, ReadLogEnd(objects_));
    WriterIdentity own;
    SILTFS_ASSIGN_OR_RETURN(own.id, BucketWriterOf(env_, store_));
    return CheckLastWriter(end, own, objects_.name());
  }

  Result<std::optional<uint64_t>> LocalSize(SegmentId id) {
    const auto info = env_.GetFileInfo(SegmentPath(store_, id));
    if (info.ok()) return std::optional(info->size);
    if (info.status().Is(StatusCode::kNotFound)) return std::optional<uint64_t>();
    return info.status();
  }

  // A local file has the content of its segment (StagedSegmentStore), so it is not downloaded.
  Status CollectSegments(const SegmentRecords& records) {
    for (const auto& [id, record] : records) {
      SILTFS_ASSIGN_OR_RETURN(const auto local, LocalSize(id));
      if (local) {
        if (record.sealed && *local == record.length) Count(record.length);
        if (record.sealed && *local != record.length)
          return Damaged(id, fmt::format("the local file of the segment has {} bytes instead of {}",
                                         *local, record.length));
        continue;
      }
      const auto content = catalog_.table.Find(id);
      if (!content && !record.sealed && record.length == 0) continue;
      if (!content) return Damaged(id, "the object of the segment is missing");
      if (record.sealed ? content->size != record.length : content->size < record.length) {
        return Damaged(id, fmt::format("the object of the segment has {} bytes instead of {}",
                                       content->size, record.length));
      }
      Count(content->size);
      contents_.push_back(*content);
    }
    for (const WaitingContent& waiting : catalog_.waiting) waiting_.insert(waiting.content.id);
    for (const BucketCatalog::Image& image : catalog_.images) images_.insert(image.content.id);
    return Status::Ok();
  }

  void Count(uint64_t bytes) {
    ++done_.segments;
    done_.bytes += bytes;
  }

  // Keeps what an earlier call has downloaded, if it is current.
  Status PrepareDirectory() {
    SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env_, store_, pulled_));
    std::map<std::string, SegmentId> wanted;
    for (const SegmentContent& content : contents_)
      wanted[PulledName(content)] = content.id.segment;
    SILTFS_ASSIGN_OR_RETURN(const auto entries, env_.ListDirectory(pulled_));
    for (const DirectoryEntry& entry : entries) {
      const auto found = wanted.find(entry.name);
      if (found != wanted.end()) {
        there_.insert(found->second);
      } else {
        SILTFS_RETURN_IF_ERROR(env_.RemoveFile(JoinPath(pulled_, entry.name)));
      }
    }
    return Status::Ok();
  }

  uint64_t BytesToDownload() const {
    uint64_t bytes = 0;
    for (const SegmentContent& content : contents_)
      bytes += there_.contains(content.id.segment) ? 0 : content.size;
    return bytes;
  }

  Status CheckRoom() {
    SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, env_.GetDiskSpace(store_));
    const uint64_t needed = BytesToDownload() + kOtherRoom;
    if (needed <= space.available_bytes) return Status::Ok();
    return Status(
               StatusCode::kNoSpace,
               fmt::format("the segments of the bucket need {}, and the disk has {}; nothing was "
                           "downloaded",
                           FormatSize(needed), FormatSize(space.available_bytes)))
        .At(store_);
  }

  Status Download() {
    ConversionProgress progress(options_, done_.bytes);
    progress.Add(done_.bytes - BytesToDownload());
    Status downloaded = RunSteps(contents_.size(), options_.threads, [&](size_t number) {
      if (stop_.stopped()) return Status(StatusCode::kInterrupted, "was interrupted");
      const SegmentContent& content = contents_[number];
      if (there_.contains(content.id.segment)) return Status::Ok();
      SILTFS_RETURN_IF_ERROR(DownloadOne(content));
      progress.Add(content.size);
      return Status::Ok();
    });
    SILTFS_RETURN_IF_ERROR(downloaded);
    return env_.SyncDirectory(pulled_);
  }

  Status DownloadOne(const SegmentContent& content) {
    const std::string path = JoinPath(pulled_, PulledName(content));
    const std::string part = path + ".part";
    const Status removed = env_.RemoveFile(part);
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    SILTFS_ASSIGN_OR_RETURN(const auto file, env_.OpenFile(part, {.mode = OpenMode::kCreate}));
    SILTFS_RETURN_IF_ERROR(Fill(content, *file));
    SILTFS_RETURN_IF_ERROR(file->Sync());
    SILTFS_RETURN_IF_ERROR(file->Close());
    SILTFS_RETURN_IF_ERROR(env_.Rename(part, path));
    ++moved_segments_;
    moved_bytes_ += content.size;
    return Status::Ok();
  }

  Status Fill(const SegmentContent& content, File& file) {
    const auto local = [&](LocalFileKind kind) {
      return env_.OpenFile(LocalFilePath(BucketCachePath(store_), content, kind),
                           {.mode = OpenMode::kRead});
    };
    const auto write = [&](uint64_t offset, ByteView bytes) { return file.Write(offset, bytes); };
    if (waiting_.contains(content.id)) {
      SILTFS_ASSIGN_OR_RETURN(const auto waiting, local(LocalFileKind::kWaiting));
      return CopyBlocks(content, *waiting, write);
    }
    std::unique_ptr<File> image;
    if (images_.contains(content.id)) {
      auto opened = local(LocalFileKind::kImage);
      if (opened.ok()) image = std::move(opened).value();
      opened.status().IgnoreError("the bucket has all blocks");
    }
    return ReadObjectBlocks(objects_, content, image.get(), write);
  }

  // After a power cut some names may be old and some new. Both are found again.
  Status MoveAll() {
    std::set<std::string> directories;
    for (const SegmentContent& content : contents_) {
      const SegmentId id = content.id.segment;
      const std::string directory = SegmentDirectory(store_, id);
      if (directories.insert(directory).second)
        SILTFS_RETURN_IF_ERROR(CreateSegmentDirectory(env_, store_, id));
      SILTFS_RETURN_IF_ERROR(
          env_.Rename(JoinPath(pulled_, PulledName(content)), SegmentPath(store_, id)));
    }
    for (const std::string& directory : directories)
      SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(directory));
    return env_.SyncDirectory(pulled_);
  }

  Status CheckAll(const SegmentRecords& records) {
    for (const auto& [id, record] : records) {
      if (!record.sealed) continue;
      SILTFS_ASSIGN_OR_RETURN(const auto size, LocalSize(id));
      if (size && *size == record.length) continue;
      return Status(StatusCode::kIoError, "a segment that was downloaded is not there")
          .At(SegmentPath(store_, id));
    }
    return Status::Ok();
  }

  Env& env_;
  ObjectStore& objects_;
  const ConversionOptions& options_;
  const std::string& store_;
  const std::string pulled_;
  StopSignal stop_;
  BucketCatalog catalog_;
  std::vector<SegmentContent> contents_;  // that are not in STORE/segments
  std::set<ContentId> waiting_;           // whole local files
  std::set<ContentId> images_;            // local files with some blocks
  std::set<SegmentId> there_;             // downloaded by an earlier call
  Conversion done_;
  std::atomic<uint64_t> moved_segments_{0};
  std::atomic<uint64_t> moved_bytes_{0};
};

}  // namespace

Result<Conversion> ConvertToDirectory(Env& env, ObjectStore& objects,
                                      const ConversionOptions& options) {
  ToDirectory conversion(env, objects, options);
  return RunInterruptibly(objects, conversion.stop(), options, [&] { return conversion.Run(); });
}

}  // namespace siltfs
