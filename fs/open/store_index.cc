#include "fs/open/store_index.h"

#include <utility>

#include "fs/interface/file_system.h"
#include "fs/open/store_layout.h"
#include "index/device_directories.h"
#include "index/engines.h"
#include "index/open_index.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

Status NeedsMount(std::string cause, const std::string& path) {
  return Status(StatusCode::kInvalidArgument, std::move(cause) + ": mount and unmount it first")
      .At(path);
}

Result<StoreIndex> Open(Env& env, const std::string& store, StoreAccess access) {
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state, ReadSuperblock(env, store, access));
  StoreIndex opened;
  SILTFS_ASSIGN_OR_RETURN(opened.lock, env.LockFile(LockPath(store)));
  // Read the superblock again: another process may have had the lock and written the superblock
  // since it was first read.
  SILTFS_ASSIGN_OR_RETURN(state, ReadSuperblock(env, store, access));
  const bool read_only = access == StoreAccess::kReadOnly;
  if (!read_only && !state.superblock.clean) {
    return NeedsMount("the store was not unmounted cleanly", store);
  }
  IndexOptions options = IndexOptionsOf(state.superblock, store);
  options.read_only = read_only;
  if (read_only) options.memory_limit = kNoMemoryLimit;
  SILTFS_ASSIGN_OR_RETURN(opened.rebuild_interrupted, IsRebuildUnfinished(env, store));
  auto index = OpenIndex(env, options);
  // A rebuild that has just begun leaves no index to open.
  if (!index.ok() && opened.rebuild_interrupted &&
      (index.status().Is(StatusCode::kCorruption) || index.status().Is(StatusCode::kNotFound))) {
    return Status(StatusCode::kCorruption,
                  "siltfs index rebuild was interrupted: run it again, or mount the store")
        .At(options.directory);
  }
  if (!index.ok() && index.status().Is(StatusCode::kNotFound)) {
    return Status(StatusCode::kCorruption, "the store's chunk index is missing")
        .At(options.directory);
  }
  if (!index.ok()) return std::move(index).status();
  opened.index = std::move(*index);
  return opened;
}

}  // namespace

IndexOptions IndexOptionsOf(const Superblock& superblock, const std::string& store) {
  return {.engine = static_cast<IndexEngine>(superblock.index_engine),
          .directory = IndexPath(store),
          .memory_limit = superblock.index_memory,
          .parameters = superblock.index_parameters};
}

IndexOptions IndexOptionsOf(const Superblock& superblock, const FileSystemOptions& options) {
  IndexOptions index_options = IndexOptionsOf(superblock, options.store);
  index_options.read_only = options.read_only;
  if (options.index_memory) index_options.memory_limit = *options.index_memory;
  index_options.synchronous = options.index_sync;
  index_options.background_bytes_per_second = options.index_merge_rate;
  return index_options;
}

uint64_t LeastIndexMemory(Env& env, const std::string& store) {
  const IndexEngineRow* row = nullptr;
  IndexPlanQuestion question{.entries = 1};
  if (const auto state = ReadSuperblock(env, store, StoreAccess::kReadOnly); state.ok()) {
    row = FindIndexEngine(static_cast<IndexEngine>(state->superblock.index_engine));
    question.parameters = state->superblock.index_parameters;
  }
  if (row == nullptr) row = IndexEngines().front();
  const auto plan = row->plan(question);
  return plan.ok() ? plan->least_memory_bytes : 0;
}

Result<StoreIndex> OpenStoreIndexReadOnly(Env& env, const std::string& store) {
  return Open(env, store, StoreAccess::kReadOnly);
}

Result<StoreIndex> OpenStoreIndexForWriting(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(StoreIndex opened, Open(env, store, StoreAccess::kReadWrite));
  if (opened.rebuild_interrupted)
    return NeedsMount("the rebuild of the store's chunk index was interrupted", IndexPath(store));
  // If entries were put now, the entries that were lost to damage would count as durable again, and
  // no mount would put them.
  if (opened.index->stats().damaged_pages > 0) {
    return NeedsMount("the store's chunk index has lost entries to damage", IndexPath(store));
  }
  return opened;
}

Result<bool> IsRebuildUnfinished(Env& env, const std::string& store) {
  const auto mark = env.GetFileInfo(IndexRebuildPath(store));
  if (mark.status().Is(StatusCode::kNotFound)) return false;
  if (!mark.ok()) return mark.status();
  return mark->type == FileType::kDirectory;
}

Status FinishRebuild(Env& env, const std::string& store) {
  SILTFS_ASSIGN_OR_RETURN(const bool unfinished, IsRebuildUnfinished(env, store));
  if (!unfinished) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(env.RemoveDirectory(IndexRebuildPath(store)));
  return env.SyncDirectory(store);
}

Status MarkRebuild(Env& env, const std::string& store) {
  return CreateDirectoryDurably(env, store, IndexRebuildPath(store));
}

Status EmptyIndexDirectory(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(MarkRebuild(env, store));
  const std::string directory = IndexPath(store);
  const auto entries = ListOrClear(env, directory);
  if (!entries.ok()) {
    if (!entries.status().Is(StatusCode::kNotFound)) return entries.status();
    SILTFS_RETURN_IF_ERROR(env.CreateDirectory(directory));
    return env.SyncDirectory(store);
  }
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(directory, entry.name);
    const bool is_directory = entry.type == FileType::kDirectory;
    // It may be a mount point or a link to a directory on another device.
    if (IsDeviceDirectoryName(entry.name) && (is_directory || entry.type == FileType::kLink)) {
      SILTFS_RETURN_IF_ERROR(EmptyDeviceDirectory(env, path));
      continue;
    }
    SILTFS_RETURN_IF_ERROR(is_directory ? env.RemoveDirectory(path) : env.RemoveFile(path));
  }
  return env.SyncDirectory(directory);
}

}  // namespace siltfs
