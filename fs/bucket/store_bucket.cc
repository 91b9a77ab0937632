#include "fs/bucket/store_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "fs/open/store_layout.h"
#include "store/object/object_store_probe.h"
#include "store/s3/s3_object_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr const char* kOwnerKey = "siltfs";
constexpr const char* kProbeKey = "siltfs-probe";
constexpr std::string_view kOwnerText = "siltfs store ";
constexpr size_t kMostOwnerBytes = 4096;

std::string OwnerText(const StoreUuid& uuid) {
  return fmt::format("{}{}\n", kOwnerText, uuid.ToText());
}

// The store that owns the prefix.
Result<StoreUuid> ReadOwner(ObjectStore& objects) {
  const auto text = objects.Get(kOwnerKey, kMostOwnerBytes, nullptr);
  SILTFS_RETURN_IF_ERROR(text.status());
  std::string_view line = AsText(*text);
  std::optional<StoreUuid> uuid;
  if (line.starts_with(kOwnerText) && line.ends_with('\n')) {
    line.remove_prefix(kOwnerText.size());
    line.remove_suffix(1);
    uuid = StoreUuid::FromText(line);
  }
  if (uuid) return *uuid;
  return Status(StatusCode::kCorruption, "the object does not name a store")
      .At(objects.name() + "/siltfs");
}

Status CheckOwner(ObjectStore& objects, const StoreUuid& uuid) {
  const auto owner = ReadOwner(objects);
  if (owner.status().Is(StatusCode::kNotFound)) {
    return Status(
               StatusCode::kNotFound,
               fmt::format("the bucket does not have the store ({}): see that the bucket file of "
                           "the store names the right bucket and endpoint",
                           owner.status().cause()))
        .At(objects.name());
  }
  SILTFS_RETURN_IF_ERROR(owner.status());
  if (*owner == uuid) return Status::Ok();
  return Status(
             StatusCode::kInvalidArgument,
             fmt::format("the bucket belongs to the store {}, not to {}: see that the bucket file "
                         "of the store names the right bucket",
                         owner->ToText(), uuid.ToText()))
      .At(objects.name());
}

BucketOptions SegmentOptions(const std::string& store, const BucketConfig& config,
                             const StoreBucketOptions& options) {
  BucketOptions made;
  made.directory = BucketCachePath(store);
  made.cache_bytes = config.cache_bytes;
  made.bucket_timeout = options.bucket_timeout;
  return made;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenObjects(Env& env, const BucketConfig& config,
                                                 std::chrono::nanoseconds deadline) {
  SILTFS_RETURN_IF_ERROR(ValidateBucketConfig(config));
  S3Options options;
  SILTFS_ASSIGN_OR_RETURN(options.address, ParseBucketUrl(config.address));
  if (!config.endpoint.empty()) {
    SILTFS_ASSIGN_OR_RETURN(options.endpoint, ParseEndpoint(config.endpoint));
  }
  options.region = config.region;
  options.ca_file = config.ca_file;
  options.credentials_file = config.credentials;
  options.deadline = deadline;
  SILTFS_ASSIGN_OR_RETURN(auto objects, S3ObjectStore::Open(env, std::move(options)));
  return std::unique_ptr<ObjectStore>(std::move(objects));
}

Status ClaimBucket(ObjectStore& objects, const StoreUuid& uuid) {
  SILTFS_ASSIGN_OR_RETURN(const ObjectPage page, objects.List("", "", 1));
  if (!page.objects.empty()) {
    const auto owner = ReadOwner(objects);
    const std::string whose =
        owner.ok() ? fmt::format("belongs to the store {}", owner->ToText())
                   : fmt::format("has objects, such as \"{}\"", page.objects.front().key);
    return Status(StatusCode::kAlreadyExists,
                  fmt::format("the bucket {}; choose another prefix, or remove what is there; "
                              "nothing was changed",
                              whose))
        .At(objects.name());
  }
  SILTFS_RETURN_IF_ERROR(ProbeObjectStore(objects, kProbeKey));
  const auto put = objects.Put(kOwnerKey, AsBytes(OwnerText(uuid)), PutCondition::IfAbsent());
  if (!put.status().Is(StatusCode::kAlreadyExists)) return put.status();
  return Status(StatusCode::kAlreadyExists,
                "another mkfs has claimed the bucket at the same time; nothing was changed")
      .At(objects.name());
}

Status ReleaseBucket(ObjectStore& objects) { return objects.Remove(kOwnerKey); }

StoreBucket::StoreBucket(std::unique_ptr<ObjectStore> objects, Env& env, const std::string& store,
                         BucketOptions options, std::function<bool()> interrupted)
    : store_(store), objects_(std::move(objects)), segments_(env, *objects_, std::move(options)) {
  if (!interrupted) return;
  poll_.emplace(std::move(interrupted), [this] {
    was_interrupted_ = true;
    Interrupt();
  });
}

StoreBucket::~StoreBucket() {
  poll_.reset();
  Interrupt();
}

void StoreBucket::Interrupt() {
  segments_.Interrupt();
  objects_->Interrupt();
}

Status StoreBucket::EndOpening(Status outcome) {
  poll_.reset();
  if (outcome.ok() || !was_interrupted_) return outcome;
  return Status(StatusCode::kInterrupted, "opening the store was interrupted").At(store_);
}

Result<std::unique_ptr<StoreBucket>> StoreBucket::Open(Env& env, const std::string& store,
                                                       const StoreBucketOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto config, ReadBucketConfig(env, store));
  if (!config) return std::unique_ptr<StoreBucket>();
  SILTFS_ASSIGN_OR_RETURN(auto objects, OpenObjects(env, *config,
                                                    std::min<std::chrono::nanoseconds>(
                                                        options.bucket_timeout, kRequestDeadline)));
  return OpenOver(std::move(objects), env, store, *config, options);
}

Result<std::unique_ptr<StoreBucket>> StoreBucket::OpenOver(std::unique_ptr<ObjectStore> objects,
                                                           Env& env, const std::string& store,
                                                           const BucketConfig& config,
                                                           const StoreBucketOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state,
                          ReadSuperblock(env, store, StoreAccess::kReadOnly));
  std::unique_ptr<StoreBucket> bucket(new StoreBucket(
      std::move(objects), env, store, SegmentOptions(store, config, options), options.interrupted));
  Status owned = CheckOwner(*bucket->objects_, state.superblock.uuid);
  if (!owned.ok()) return bucket->EndOpening(std::move(owned));
  return bucket;
}

StoreBucketStats StoreBucket::Stats() const {
  return {objects_->name(), objects_->Counters(), segments_.GetStatus()};
}

}  // namespace siltfs
