#include "fs/open/make_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "chunker/parameters.h"
#include "fs/interface/file_system.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/draw_uuid.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/open/unfinished_store.h"
#include "fs/records/directory_entry.h"
#include "fs/records/inode_record.h"
#include "fs/records/schema.h"
#include "fs/records/segment_record.h"
#include "index/engines.h"
#include "store/base/coding.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// Makes the directory and marks it as unfinished. A directory that exists must be empty, and is
// marked, too, or must have the mark of an earlier mkfs. Sets `made` if the directory was made.
Status ClaimDirectory(Env& env, const std::string& path, bool& made) {
  auto entries = env.ListDirectory(path);
  if (entries.status().Is(StatusCode::kNotFound)) {
    SILTFS_RETURN_IF_ERROR(env.CreateDirectory(path));
    made = true;
  } else if (!entries.ok()) {
    return std::move(entries).status();
  } else if (!entries->empty()) {
    bool marked = false;
    for (const DirectoryEntry& entry : *entries) {
      const std::string inner = JoinPath(path, entry.name);
      marked |= inner == UnfinishedStorePath(path) && entry.type == FileType::kDirectory;
      if (inner != LockPath(path)) continue;
      auto lock = env.LockFile(LockPath(path));
      if (!lock.ok()) return std::move(lock).status();
    }
    if (marked) return Status::Ok();
    return Status(StatusCode::kNotEmpty, "the directory is not empty; nothing was changed")
        .At(path);
  }
  return MarkUnfinished(env, path);
}

Status CheckMetadataEngine(const std::string& name) {
  const auto found = FindMetadataEngine(name);
  if (found.ok()) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                fmt::format("there is no metadata engine \"{}\"", name));
}

Result<Superblock> DrawSuperblock(Env& env, const MakeStoreOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckIndexChoice(options.index_engine, options.index_parameters));
  SILTFS_RETURN_IF_ERROR(CheckMetadataEngine(options.metadata_engine));
  Superblock superblock;
  superblock.ro_compat_features = kUsualRoCompatFeatures;
  superblock.created_ns = env.NowNanoseconds();
  superblock.chunk_min = options.chunk_min;
  superblock.chunk_avg = options.chunk_avg;
  superblock.chunk_max = options.chunk_max;
  superblock.compression.codec =
      options.compression_level == 0 ? BlockCodecId::kNone : BlockCodecId::kZstd;
  superblock.compression.level = options.compression_level;
  superblock.index_engine = static_cast<uint8_t>(options.index_engine);
  superblock.index_memory = options.index_memory;
  superblock.index_parameters = options.index_parameters;
  superblock.metadata_engine = options.metadata_engine;
  if (!options.index_parameters.empty() || !options.metadata_engine.empty())
    superblock.incompat_features |= kIncompatEngines;
  if (options.deltas) {
    if (options.compression_level == 0) {
      return Status(StatusCode::kInvalidArgument,
                    "deltas need compression; choose a level, or make the store without deltas");
    }
    superblock.incompat_features |= kIncompatDeltas;
  }
  if (options.make_segment_place) superblock.incompat_features |= kIncompatBucket;
  if (options.chunks_only) superblock.incompat_features |= kIncompatChunksOnly;
  SILTFS_RETURN_IF_ERROR(DrawUuid(env, superblock.uuid));
  superblock.SetIdentity(options.label, superblock.uuid);
  SILTFS_RETURN_IF_ERROR(env.FillRandom(superblock.tag_secret));

  std::array<uint8_t, RabinPolynomial::kRandomBytes> random;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(random));
  SILTFS_ASSIGN_OR_RETURN(RabinPolynomial polynomial, RabinPolynomial::FromRandom(random));
  const ChunkerParameters parameters{.min = options.chunk_min,
                                     .avg = options.chunk_avg,
                                     .max = options.chunk_max,
                                     .window = kWindowSize,
                                     .polynomial = polynomial};
  SILTFS_RETURN_IF_ERROR(parameters.Validate());
  superblock.rabin_polynomial = polynomial.value();
  SILTFS_RETURN_IF_ERROR(ValidateSuperblock(superblock));
  return superblock;
}

// Returns the segment size: 1/64 of the disk or less, within limits. GC copies a few segments at a
// time, and these should be a small part of the disk.
Result<uint32_t> SegmentBytesFor(Env& env, const std::string& store) {
  constexpr uint64_t kSegmentsPerDisk = 64;
  constexpr uint64_t kLeast = 1u << 20;
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace disk, env.GetDiskSpace(store));
  return static_cast<uint32_t>(std::clamp<uint64_t>(
      std::bit_floor(disk.total_bytes / kSegmentsPerDisk), kLeast, kMaxSegmentTargetSize));
}

Status MakeMetadata(Env& env, const Superblock& superblock, const std::string& store,
                    const FileOwner& root_owner) {
  const std::string path = MetadataPath(store);
  SILTFS_RETURN_IF_ERROR(env.CreateDirectory(path));
  SILTFS_ASSIGN_OR_RETURN(auto kv,
                          OpenStoreMetadata(env, superblock, store, KvStoreOptions::Mode::kCreate));
  InodeRecord root;
  root.mode = 0040755;
  root.links = 2;
  root.uid = root_owner.uid;
  root.gid = root_owner.gid;
  root.parent = kRootInode;
  root.next_cookie = kFirstCookie;
  root.atime = root.mtime = root.ctime = root.btime = env.NowNanoseconds();
  Encoder counters;
  for (size_t i = 0; i < kCounterCount; ++i)
    counters.I64(i == static_cast<size_t>(Counter::kDirectories) ? 1 : 0);
  SILTFS_RETURN_IF_ERROR(kv->Write({{InodeKey(kRootInode), root.Encode()},
                                    {std::string(kCountersKey), counters.Take()},
                                    {std::string(kIdRangesKey), IdRanges{}.Encode()},
                                    {std::string(kNotesKey), std::string()}}));
  SILTFS_RETURN_IF_ERROR(kv->CloseCleanly());
  return env.SyncDirectory(path);
}

// Makes all files of the store, in a directory that is marked and locked, and removes the mark.
// `superblock` comes from DrawSuperblock.
Status FillDirectory(Env& env, const MakeStoreOptions& options, Superblock& superblock) {
  // The remains of an earlier mkfs.
  SILTFS_RETURN_IF_ERROR(RemoveUnfinishedStore(env, options.path));
  SILTFS_ASSIGN_OR_RETURN(superblock.segment_bytes, SegmentBytesFor(env, options.path));
  SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env, options.path));
  SILTFS_RETURN_IF_ERROR(env.CreateDirectory(IndexPath(options.path)));
  SILTFS_RETURN_IF_ERROR(MakeMetadata(env, superblock, options.path, options.root_owner));
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.path));
  if (options.make_segment_place)
    SILTFS_RETURN_IF_ERROR(options.make_segment_place(superblock.uuid));
  superblock.clean = true;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, options.path, superblock));
  // Makes the name of the store's directory durable, if the directory was made here.
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(ParentOf(options.path)));
  return MarkFinished(env, options.path);
}

// Removes the files that a failed MakeStore has made, as far as the device permits. The next mkfs
// removes the other files.
void Undo(Env& env, const std::string& path, bool made) {
  if (!RemoveUnfinishedStore(env, path).ok()) return;
  if (!env.RemoveFile(LockPath(path)).ok()) return;
  if (!env.RemoveDirectory(UnfinishedStorePath(path)).ok() || !made) return;
  env.RemoveDirectory(path).IgnoreError("an empty directory is as good");
}

}  // namespace

Status MakeStore(Env& env, const MakeStoreOptions& options) {
  // Invalid options are found before anything is written.
  SILTFS_ASSIGN_OR_RETURN(Superblock superblock, DrawSuperblock(env, options));
  bool made = false;
  Status claimed = ClaimDirectory(env, options.path, made);
  if (!claimed.ok()) {
    if (made) env.RemoveDirectory(options.path).IgnoreError("an empty directory is as good");
    return claimed;
  }
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(options.path)));
  Status filled = FillDirectory(env, options, superblock);
  if (!filled.ok() && !filled.Is(StatusCode::kNotEmpty)) Undo(env, options.path, made);
  return filled;
}

}  // namespace siltfs
