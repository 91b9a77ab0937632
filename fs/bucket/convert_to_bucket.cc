// ConvertToBucket: uploads the segments of a store, and then changes its superblock.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/conversion_steps.h"
#include "fs/bucket/parallel_steps.h"
#include "fs/open/store_layout.h"
#include "store/bucket/bucket_catalog.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/segment_content.h"
#include "store/bucket/segment_object.h"
#include "store/env/files.h"
#include "store/env/process.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

// So much of the cache is filled with the newest segments.
constexpr uint64_t kCacheShare = 2;
constexpr size_t kMostImages = 8192;

class ToBucket {
 public:
  ToBucket(Env& env, ObjectStore& objects, const BucketConfig& config,
           const ConversionOptions& options)
      : env_(env), objects_(objects), config_(config), options_(options), store_(options.store) {}

  Result<Conversion> Run() {
    SILTFS_ASSIGN_OR_RETURN(const ClosedStore closed,
                            LockClosedStore(env_, store_, /*wanted_in_bucket=*/true));
    if (closed.state.superblock.in_bucket()) return Conversion{};
    SILTFS_RETURN_IF_ERROR(CollectSegments(closed.records.segments));
    SILTFS_RETURN_IF_ERROR(ForgetEpochs(env_, store_, closed));
    SILTFS_RETURN_IF_ERROR(Begin(closed.state.superblock.uuid));
    SILTFS_RETURN_IF_ERROR(Upload());
    SILTFS_RETURN_IF_ERROR(CheckUploaded());
    // Nothing that another machine has done meanwhile may be lost, nor what this one has done.
    SILTFS_RETURN_IF_ERROR(BeginEpoch(env_, objects_, own_).status());
    SILTFS_RETURN_IF_ERROR(WritePlace(env_, store_, closed.state, /*in_bucket=*/true));
    SILTFS_RETURN_IF_ERROR(ClearDirectory());
    Conversion done;
    done.converted = true;
    done.segments = contents_.size();
    for (const SegmentContent& content : contents_) done.bytes += content.size;
    done.moved_segments = moved_segments_;
    done.moved_bytes = moved_bytes_;
    return done;
  }

  StopSignal& stop() { return stop_; }

 private:
  Status Damaged(SegmentId id, std::string_view how) const {
    return Status(StatusCode::kCorruption,
                  fmt::format("the segment {}, so the store cannot be converted: repair it with "
                              "siltfs fsck -y",
                              how))
        .At(SegmentPath(store_, id));
  }

  // Also finds segments that a bucket cannot have before anything is uploaded.
  Status CollectSegments(const SegmentRecords& records) {
    for (const auto& [id, record] : records) {
      if (!record.sealed) continue;
      const auto info = env_.GetFileInfo(SegmentPath(store_, id));
      if (info.status().Is(StatusCode::kNotFound)) return Damaged(id, "is missing");
      SILTFS_RETURN_IF_ERROR(info.status());
      if (info->size != record.length) {
        return Damaged(id, fmt::format("has {} bytes instead of {}", info->size, record.length));
      }
      if (info->size > kMostObjectSegmentBytes) return Damaged(id, "is too large for an object");
      contents_.push_back({{id, 0}, static_cast<uint32_t>(info->size)});
    }
    return Status::Ok();
  }

  Status Begin(const StoreUuid& uuid) {
    SILTFS_ASSIGN_OR_RETURN(const auto before, ReadBucketConfig(env_, store_));
    if (before && before->address != config_.address) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("its conversion to {} was begun: go on with siltfs bucket push "
                                "without --bucket, or give it up with siltfs bucket pull",
                                before->address))
          .At(store_);
    }
    SILTFS_RETURN_IF_ERROR(WriteBucketConfig(env_, store_, config_));
    Status claimed = Claim(uuid);
    if (!claimed.ok() && !before)
      env_.RemoveFile(BucketConfigPath(store_)).IgnoreError("the next call writes it again");
    SILTFS_RETURN_IF_ERROR(claimed);
    // What an earlier conversion has left would be taken for newer contents.
    SILTFS_RETURN_IF_ERROR(ClearBucketCache(env_, store_, /*make=*/true));
    SILTFS_ASSIGN_OR_RETURN(catalog_, ListForConversion(env_, objects_, stop_, store_));
    SILTFS_ASSIGN_OR_RETURN(own_.id, BucketWriterOf(env_, store_));
    own_.host = HostName();
    SILTFS_ASSIGN_OR_RETURN(const uint32_t epoch, BeginEpoch(env_, objects_, own_));
    if (catalog_.last_generation >> kEpochShift > epoch) {
      return Status(StatusCode::kStale, "the bucket has segments of another writer")
          .At(objects_.name());
    }
    next_generation_ = std::max(catalog_.last_generation + 1, (uint64_t{epoch} << kEpochShift) + 1);
    return Status::Ok();
  }

  Status Claim(const StoreUuid& uuid) {
    const auto owner = ReadBucketOwner(objects_);
    if (owner.ok() && *owner == uuid) return Status::Ok();
    owner.status().IgnoreError("ClaimBucket tells what is there");
    return ClaimBucket(objects_, uuid);
  }

  Status Upload() {
    uint64_t total = 0;
    for (const SegmentContent& content : contents_) total += content.size;
    ConversionProgress progress(options_, total);
    progress.Add(0);
    return RunSteps(contents_.size(), options_.threads, [&](size_t number) {
      if (stop_.stopped()) return Status(StatusCode::kInterrupted, "was interrupted");
      SILTFS_RETURN_IF_ERROR(UploadOne(contents_[number]));
      progress.Add(contents_[number].size);
      return Status::Ok();
    });
  }

  // Sets the generation of the content in the bucket.
  Status UploadOne(SegmentContent& content) {
    const std::string path = SegmentPath(store_, content.id.segment);
    SILTFS_ASSIGN_OR_RETURN(const auto file, env_.OpenFile(path, {.mode = OpenMode::kRead}));
    const auto held = catalog_.table.Find(content.id.segment);
    if (held && held->size == content.size) {
      SILTFS_ASSIGN_OR_RETURN(const bool same, IsThere(*held, *file));
      if (same) {
        content = *held;
        return Status::Ok();
      }
    }
    content.id.generation = next_generation_++;
    SILTFS_ASSIGN_OR_RETURN(const BlockChecksums sums, BlockChecksums::Compute(content, *file));
    const ObjectImage image(content, *file, sums.EncodeTrailer());
    SILTFS_RETURN_IF_ERROR(
        objects_.PutFile(SegmentObjectKey(content.id), image, PutCondition::IfAbsent()).status());
    ++moved_segments_;
    moved_bytes_ += content.size;
    return Status::Ok();
  }

  // Whether an earlier call has uploaded this content, and the segment has not been replaced since.
  Result<bool> IsThere(const SegmentContent& held, const ReadableFile& file) {
    Bytes trailer(TrailerBytes(held.size));
    const auto got = objects_.Read(SegmentObjectKey(held.id), "", held.size, trailer);
    if (got.status().Is(StatusCode::kNotFound)) return false;
    SILTFS_RETURN_IF_ERROR(got.status());
    const auto theirs = BlockChecksums::Decode(held, ByteView(trailer).first(*got));
    if (!theirs.ok()) {
      theirs.status().IgnoreError("the segment is uploaded again, with another key");
      return false;
    }
    SILTFS_ASSIGN_OR_RETURN(const auto ours, BlockChecksums::Compute(held, file));
    return ours == *theirs;
  }

  Status CheckUploaded() {
    SILTFS_ASSIGN_OR_RETURN(const BucketCatalog catalog,
                            ListForConversion(env_, objects_, stop_, store_));
    for (const SegmentContent& content : contents_) {
      const auto there = catalog.table.Find(content.id.segment);
      if (there && *there == content) continue;
      return Status(StatusCode::kIoError,
                    "the bucket does not list the segment that it has confirmed, or lists a newer "
                    "one; run the command again")
          .At(objects_.name() + "/" + SegmentObjectKey(content.id));
    }
    return Status::Ok();
  }

  // The newest segments stay as part of the cache, the others go.
  Status ClearDirectory() {
    uint64_t room = config_.cache_bytes / kCacheShare;
    size_t images = 0;
    std::string directory;
    for (auto content = contents_.rbegin(); content != contents_.rend(); ++content) {
      const std::string path = SegmentPath(store_, content->id.segment);
      const uint64_t bytes = ObjectBytes(content->size);
      if (bytes <= room && images < kMostImages) {
        SILTFS_RETURN_IF_ERROR(env_.Rename(
            path, LocalFilePath(BucketCachePath(store_), *content, LocalFileKind::kImage)));
        room -= bytes;
        ++images;
      } else {
        SILTFS_RETURN_IF_ERROR(env_.RemoveFile(path));
      }
      const std::string parent = ParentOf(path);
      if (!directory.empty() && parent != directory)
        SILTFS_RETURN_IF_ERROR(env_.SyncDirectory(directory));
      directory = parent;
    }
    return directory.empty() ? Status::Ok() : env_.SyncDirectory(directory);
  }

  Env& env_;
  ObjectStore& objects_;
  const BucketConfig& config_;
  const ConversionOptions& options_;
  const std::string& store_;
  StopSignal stop_;
  WriterIdentity own_;
  BucketCatalog catalog_;
  std::vector<SegmentContent> contents_;  // ascending by id
  std::atomic<uint64_t> next_generation_{0};
  std::atomic<uint64_t> moved_segments_{0};
  std::atomic<uint64_t> moved_bytes_{0};
};

}  // namespace

Result<Conversion> ConvertToBucket(Env& env, ObjectStore& objects, const BucketConfig& config,
                                   const ConversionOptions& options) {
  ToBucket conversion(env, objects, config, options);
  return RunInterruptibly(objects, conversion.stop(), options, [&] { return conversion.Run(); });
}

}  // namespace siltfs
