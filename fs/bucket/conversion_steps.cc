#include "fs/bucket/conversion_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "fs/bucket/interruption_poll.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/schema.h"
#include "fs/shipping/shipping_options.h"
#include "store/bucket/bucket_names.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

Status RemoveFilesIn(Env& env, const std::string& directory) {
  const auto entries = env.ListDirectory(directory);
  if (entries.status().Is(StatusCode::kNotFound)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    if (entry.type == FileType::kDirectory) continue;
    SILTFS_RETURN_IF_ERROR(env.RemoveFile(JoinPath(directory, entry.name)));
  }
  return env.SyncDirectory(directory);
}

// A directory with entries that siltfs did not make stays.
Status RemoveIfEmpty(Env& env, const std::string& directory) {
  Status removed = env.RemoveDirectory(directory);
  if (removed.Is(StatusCode::kNotFound) || removed.Is(StatusCode::kNotEmpty)) {
    removed.IgnoreError("there is nothing to remove");
    return Status::Ok();
  }
  return removed;
}

Status RemoveWithFiles(Env& env, const std::string& directory) {
  SILTFS_RETURN_IF_ERROR(RemoveFilesIn(env, directory));
  return RemoveIfEmpty(env, directory);
}

}  // namespace

Result<ClosedStore> LockClosedStore(Env& env, const std::string& store, bool wanted_in_bucket) {
  // Read first: where there is no store, no lock is made.
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, store).status());
  ClosedStore closed;
  SILTFS_ASSIGN_OR_RETURN(closed.lock, env.LockFile(LockPath(store)));
  SILTFS_ASSIGN_OR_RETURN(closed.state, ReadSuperblock(env, store));
  const Superblock& superblock = closed.state.superblock;
  if (superblock.in_bucket() == wanted_in_bucket) return closed;
  SILTFS_ASSIGN_OR_RETURN(
      const auto kv, OpenExistingMetadata(env, superblock, store, KvStoreOptions::Mode::kReadOnly));
  auto records = ReadStoreRecords(*kv);
  if (!records.ok()) return std::move(records).status().At(MetadataPath(store));
  SILTFS_RETURN_IF_ERROR(CheckCommit(closed.state, records->last_commit, store));
  if (!superblock.clean || !records->ids.clean || !records->replacements.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "the store was not unmounted: mount and unmount it first")
        .At(store);
  }
  closed.records = std::move(records).value();
  return closed;
}

Status ForgetEpochs(Env& env, const std::string& store, const ClosedStore& closed) {
  if (closed.records.floors.empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const auto kv,
                          OpenExistingMetadata(env, closed.state.superblock, store,
                                               KvStoreOptions::Mode::kOpen, BucketPosition::kKeep));
  SILTFS_RETURN_IF_ERROR(kv->Write({{std::string(kEpochFloorsKey), std::nullopt}}));
  return kv->CloseCleanly();
}

Status WritePlace(Env& env, const std::string& store, const SuperblockState& state,
                  bool in_bucket) {
  Superblock superblock = state.superblock;
  superblock.incompat_features = in_bucket ? superblock.incompat_features | kIncompatBucket
                                           : superblock.incompat_features & ~kIncompatBucket;
  // Both copies are replaced, so none of them may keep a higher commit (I5 in docs/crash-model.md).
  superblock.last_commit = std::max(superblock.last_commit, state.highest_commit);
  return WriteSuperblock(env, store, superblock);
}

Status CheckLastWriter(const LogEnd& end, const WriterIdentity& own, const std::string& bucket) {
  if (end.next == 1 || end.writer.id == own.id) return Status::Ok();
  return Status(
             StatusCode::kStale,
             fmt::format("the bucket has commits of {} that this copy of the store does not have",
                         end.writer.host.empty() ? "another writer" : end.writer.host))
      .At(bucket);
}

Result<uint32_t> BeginEpoch(Env& env, ObjectStore& objects, const WriterIdentity& own) {
  BucketLog log(objects, own);
  const int64_t now = env.NowNanoseconds();
  SILTFS_RETURN_IF_ERROR(
      log.Begin([&](const LogEnd& end) { return CheckLastWriter(end, own, objects.name()); }, now,
                now + ShippingOptions().lease.count()));
  return log.epoch();
}

Result<BucketCatalog> ListForConversion(Env& env, ObjectStore& objects, StopSignal& stop,
                                        const std::string& store) {
  constexpr std::chrono::seconds kPatience{0};
  auto listed = LoadBucketCatalog(env, objects, stop, BucketCachePath(store), kPatience);
  if (listed.ok() || !listed.status().path().empty()) return listed;
  return std::move(listed).status().At(objects.name());
}

Result<Conversion> RunInterruptibly(ObjectStore& objects, StopSignal& stop,
                                    const ConversionOptions& options,
                                    const std::function<Result<Conversion>()>& run) {
  std::optional<InterruptionPoll> poll;
  if (options.interrupted) {
    poll.emplace(options.interrupted, [&] {
      stop.Stop();
      objects.Interrupt();
    });
  }
  auto outcome = run();
  poll.reset();
  if (outcome.ok() || !stop.stopped()) return outcome;
  outcome.status().IgnoreError("the interruption is its cause");
  return Status(StatusCode::kInterrupted, "was interrupted").At(options.store);
}

Status ClearBucketCache(Env& env, const std::string& store, bool make) {
  const std::string cache = BucketCachePath(store);
  if (make) {
    SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, store, cache));
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env, FilesDirectory(cache)));
    return MakeEmptyDirectory(env, RemovedDirectory(cache));
  }
  SILTFS_RETURN_IF_ERROR(RemoveWithFiles(env, FilesDirectory(cache)));
  SILTFS_RETURN_IF_ERROR(RemoveWithFiles(env, RemovedDirectory(cache)));
  return RemoveWithFiles(env, cache);
}

Status ForgetBucket(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, store).status());
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(store)));
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  if (state.superblock.in_bucket())
    return Status(StatusCode::kInvalidArgument,
                  "its segments are in a bucket, which it cannot forget")
        .At(store);
  return ForgetBucketLocked(env, store);
}

// The bucket file goes last, so that a call that was interrupted is repeated.
Status ForgetBucketLocked(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(ClearBucketCache(env, store, /*make=*/false));
  SILTFS_RETURN_IF_ERROR(RemoveWithFiles(env, BucketPullPath(store)));
  const Status removed = env.RemoveFile(BucketConfigPath(store));
  if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
  return env.SyncDirectory(store);
}

}  // namespace siltfs
