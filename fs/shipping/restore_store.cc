#include "fs/shipping/restore_store.h"

#include <fmt/format.h>

#include <utility>

#include "fs/meta/commit_records.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/records/epoch_floors.h"
#include "fs/records/schema.h"
#include "fs/shipping/restore_segments.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

std::string UnfinishedRestorePath(const std::string& store) {
  return JoinPath(store, "restore.unfinished");
}

Status RemoveIfThere(Env& env, const std::string& path) {
  const Status removed = env.RemoveFile(path);
  return removed.Is(StatusCode::kNotFound) ? Status::Ok() : removed;
}

// Makes and marks the directory, or clears one that an interrupted restore has left.
Status PrepareDirectory(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, ParentOf(store), store));
  for (const int copy : {0, 1}) {
    SILTFS_ASSIGN_OR_RETURN(const bool there, IsThere(env, SuperblockPath(store, copy)));
    if (there) return Status(StatusCode::kAlreadyExists, "there is a store already").At(store);
  }
  SILTFS_ASSIGN_OR_RETURN(const bool marked, IsThere(env, UnfinishedRestorePath(store)));
  if (!marked) {
    for (const std::string& path : {MetadataPath(store), SegmentsDirectory(store)}) {
      SILTFS_ASSIGN_OR_RETURN(const bool there, IsThere(env, path));
      if (!there) continue;
      return Status(StatusCode::kNotEmpty,
                    "the directory has files of a store without a superblock; choose another one")
          .At(store);
    }
  }
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, store, UnfinishedRestorePath(store)));
  SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env, store));
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing left, ListSegments(env, store));
  for (const SegmentId id : left.ids) SILTFS_RETURN_IF_ERROR(RemoveSegment(env, store, id));
  return Status::Ok();
}

// Leaves a log that is empty or damaged alone: the restore says what is wrong with it.
Status EndOtherEpoch(Env& env, ObjectStore& objects, const RestoreStoreOptions& options) {
  const WriterIdentity& writer = *options.take_over;
  SILTFS_ASSIGN_OR_RETURN(const LogEnd end, ReadLogEnd(objects));
  if (end.next == 1 || end.damaged) return Status::Ok();
  if (end.writer == writer) return Status::Ok();  // an interrupted restore has begun the epoch
  const int64_t now = env.NowNanoseconds();
  const auto check = [&options](const LogEnd& other) {
    if (other.damaged) return Status(StatusCode::kCorruption, "the log has become damaged");
    return options.may_follow ? options.may_follow(other) : Status::Ok();
  };
  return BucketLog(objects, writer).Begin(check, now, now + options.lease.count());
}

// Before the first mount, too, what the writer before has put and not committed is no damage.
Status NoteEndOfEpoch(KvStore& kv, uint32_t epoch) {
  const auto metadata = kv.Snapshot();
  SILTFS_ASSIGN_OR_RETURN(EpochFloors floors, ReadEpochFloors(*metadata));
  SILTFS_ASSIGN_OR_RETURN(const UnusedSegments unused, ReadUnusedSegments(*metadata));
  floors.Begin(epoch + 1, unused);
  return kv.Write({{std::string(kEpochFloorsKey), floors.Encode()}});
}

Result<Superblock> SuperblockOf(const std::string& attachment) {
  SILTFS_ASSIGN_OR_RETURN(const Superblock superblock, DecodeSuperblock(AsBytes(attachment)));
  SILTFS_RETURN_IF_ERROR(CheckFeatures(superblock, StoreAccess::kReadWrite));
  return superblock;
}

}  // namespace

Result<RestoredState> RestoreStore(Env& env, ObjectStore& objects,
                                   const RestoreStoreOptions& options) {
  const std::string& store = options.store;
  SILTFS_RETURN_IF_ERROR(PrepareDirectory(env, store));
  if (options.take_over) {
    SILTFS_RETURN_IF_ERROR(EndOtherEpoch(env, objects, options));
  }
  const auto make_empty = [&](const Manifest& manifest) -> Result<std::unique_ptr<KvStore>> {
    SILTFS_ASSIGN_OR_RETURN(const Superblock superblock, SuperblockOf(manifest.attachment));
    SILTFS_RETURN_IF_ERROR(MakeEmptyDirectory(env, MetadataPath(store)));
    SILTFS_RETURN_IF_ERROR(RemoveIfThere(env, LedgerPath(store)));
    return OpenStoreMetadata(env, superblock, store, KvStoreOptions::Mode::kFill);
  };
  SILTFS_ASSIGN_OR_RETURN(RestoredKvStore restored,
                          RestoreKvStore(objects, make_empty, options.restore));
  SILTFS_ASSIGN_OR_RETURN(Superblock superblock, SuperblockOf(restored.state.attachment));
  SILTFS_ASSIGN_OR_RETURN(superblock.last_commit, LoadCommitNumber(*restored.kv));
  superblock.clean = false;

  SILTFS_RETURN_IF_ERROR(
      CreateDirectoryDurably(env, ParentOf(options.bucket_directory), options.bucket_directory));
  SegmentRestore segments(env, objects, options, restored.state);
  SILTFS_RETURN_IF_ERROR(segments.Run(*restored.kv->Snapshot()));
  SILTFS_RETURN_IF_ERROR(NoteEndOfEpoch(*restored.kv, restored.state.end.epoch));
  SILTFS_RETURN_IF_ERROR(restored.kv->CloseCleanly());
  restored.kv = nullptr;
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(store));
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, store, superblock));
  SILTFS_RETURN_IF_ERROR(env.RemoveDirectory(UnfinishedRestorePath(store)));
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(store));
  return std::move(restored.state);
}

}  // namespace siltfs
