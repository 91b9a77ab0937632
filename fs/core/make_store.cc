#include "fs/core/make_store.h"

#include <algorithm>
#include <array>
#include <bit>

#include "chunker/parameters.h"
#include "fs/core/file_system.h"
#include "fs/core/store_layout.h"
#include "fs/meta/directory_entry.h"
#include "fs/meta/inode_record.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/rocksdb_store.h"
#include "fs/meta/schema.h"
#include "fs/meta/segment_record.h"
#include "store/base/coding.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// Makes the directory, or makes sure that it is empty and nobody's.
Status ClaimDirectory(Env& env, const std::string& path) {
  auto entries = env.ListDirectory(path);
  if (!entries.ok()) {
    if (!entries.status().Is(StatusCode::kNotFound)) return std::move(entries).status();
    return env.CreateDirectory(path);
  }
  if (entries->empty()) return Status::Ok();
  for (const DirectoryEntry& entry : *entries) {
    if (JoinPath(path, entry.name) != LockPath(path)) continue;
    auto lock = env.LockFile(LockPath(path));
    if (!lock.ok()) return std::move(lock).status();
  }
  return Status(StatusCode::kNotEmpty, "the directory is not empty; nothing was changed").At(path);
}

Result<Superblock> DrawSuperblock(Env& env, const MakeStoreOptions& options) {
  Superblock superblock;
  superblock.created_ns = env.NowNanoseconds();
  superblock.chunk_min = options.chunk_min;
  superblock.chunk_avg = options.chunk_avg;
  superblock.chunk_max = options.chunk_max;
  superblock.compression.codec =
      options.compression_level == 0 ? BlockCodecId::kNone : BlockCodecId::kZstd;
  superblock.compression.level = options.compression_level;
  superblock.index_engine = static_cast<uint8_t>(options.index_engine);
  superblock.index_memory = options.index_memory;
  SILTFS_RETURN_IF_ERROR(env.FillRandom(superblock.uuid.bytes));
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

// So that a handful of segments, which garbage collection has to copy at a time, is a small part of
// the disk.
Result<uint32_t> SegmentBytesFor(Env& env, const std::string& store) {
  constexpr uint64_t kSegmentsPerDisk = 64;
  constexpr uint64_t kLeast = 4u << 20;
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace disk, env.GetDiskSpace(store));
  return static_cast<uint32_t>(std::clamp<uint64_t>(
      std::bit_floor(disk.total_bytes / kSegmentsPerDisk), kLeast, kMaxSegmentTargetSize));
}

Status MakeMetadata(Env& env, const std::string& store) {
  const std::string path = MetadataPath(store);
  SILTFS_RETURN_IF_ERROR(env.CreateDirectory(path));
  RocksDbOptions kv_options;
  kv_options.path = path;
  kv_options.ledger_path = LedgerPath(store);
  kv_options.mode = RocksDbOptions::Mode::kCreate;
  SILTFS_ASSIGN_OR_RETURN(auto kv, OpenRocksDbStore(env, kv_options));
  InodeRecord root;
  root.mode = 0040755;
  root.links = 2;
  root.parent = kRootInode;
  root.next_cookie = kFirstCookie;
  root.atime = root.mtime = root.ctime = root.btime = env.NowNanoseconds();
  Encoder counters;
  for (size_t i = 0; i < kCounterCount; ++i)
    counters.I64(i == static_cast<size_t>(Counter::kDirectories) ? 1 : 0);
  SILTFS_RETURN_IF_ERROR(kv->Write({{InodeKey(kRootInode), root.Encode()},
                                    {std::string(kCountersKey), counters.Take()},
                                    {std::string(kIdRangesKey), IdRanges{}.Encode()}}));
  SILTFS_RETURN_IF_ERROR(kv->CloseCleanly());
  return env.SyncDirectory(path);
}

}  // namespace

Status MakeStore(Env& env, const MakeStoreOptions& options) {
  // Everything that can be wrong with the options is found before anything is written.
  SILTFS_ASSIGN_OR_RETURN(Superblock superblock, DrawSuperblock(env, options));
  SILTFS_RETURN_IF_ERROR(ClaimDirectory(env, options.path));
  SILTFS_ASSIGN_OR_RETURN(superblock.segment_bytes, SegmentBytesFor(env, options.path));
  SILTFS_ASSIGN_OR_RETURN(auto lock, env.LockFile(LockPath(options.path)));
  SILTFS_RETURN_IF_ERROR(CreateSegmentsDirectory(env, options.path));
  SILTFS_RETURN_IF_ERROR(env.CreateDirectory(IndexPath(options.path)));
  SILTFS_RETURN_IF_ERROR(MakeMetadata(env, options.path));
  SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.path));
  superblock.clean = true;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, options.path, superblock));
  // The store's own name, if it was made here.
  const size_t slash = options.path.find_last_not_of('/') == std::string::npos
                           ? std::string::npos
                           : options.path.rfind('/', options.path.find_last_not_of('/'));
  return env.SyncDirectory(slash == std::string::npos ? "."
                           : slash == 0               ? "/"
                                                      : options.path.substr(0, slash));
}

}  // namespace siltfs
