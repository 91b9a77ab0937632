#include "fs/open/unfinished_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "fs/open/store_layout.h"
#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr std::string_view kReplacement = ".new";  // the suffix of ReplaceFile

bool IsNumber(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether RocksDB makes files of this name.
bool IsDatabaseFile(std::string_view name) {
  for (const std::string_view whole : {"CURRENT", "IDENTITY", "LOCK", "LOG"}) {
    if (name == whole) return true;
  }
  for (const std::string_view prefix : {"MANIFEST-", "OPTIONS-", "LOG.old."}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    if (name.ends_with(".dbtmp")) name.remove_suffix(6);
    return IsNumber(name);
  }
  const size_t dot = name.find('.');
  if (dot == name.npos || !IsNumber(name.substr(0, dot))) return false;
  const std::string_view suffix = name.substr(dot);
  return suffix == ".log" || suffix == ".sst" || suffix == ".dbtmp";
}

Status InTheWay(const std::string& store, const std::string& path) {
  return Status(StatusCode::kNotEmpty,
                fmt::format("siltfs mkfs did not finish here, and {} is none of its files: remove "
                            "it and run mkfs again; nothing was changed",
                            path))
      .At(store);
}

// The paths to remove, in this order.
struct Remains {
  std::vector<std::string> superblocks;
  std::vector<std::string> files;
  std::vector<std::string> directories;
};

// Checks that a directory of mkfs has only files that mkfs makes there, and collects them.
template <typename IsOwn>
Status CollectDirectory(Env& env, const std::string& store, const std::string& path,
                        const IsOwn& is_own, Remains& remains) {
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(path));
  for (const DirectoryEntry& entry : entries) {
    const std::string inner = JoinPath(path, entry.name);
    if (entry.type != FileType::kRegular || !is_own(entry.name)) return InTheWay(store, inner);
    remains.files.push_back(inner);
  }
  remains.directories.push_back(path);
  return Status::Ok();
}

// kNotEmpty unless mkfs alone has written this superblock copy, which then has generation 1. A
// mount for writing writes the superblock again, with a higher generation, before it serves
// requests.
Status CheckSuperblock(Env& env, const std::string& store, int copy) {
  const auto superblock = ReadSuperblockCopy(env, store, copy);
  if (superblock.ok() && superblock->generation == 1) return Status::Ok();
  return Status(StatusCode::kNotEmpty, "there is a store in the directory; nothing was changed")
      .At(store);
}

Status Collect(Env& env, const std::string& store, Remains& remains) {
  const std::array<std::string, 2> superblocks = {SuperblockPath(store, 0),
                                                  SuperblockPath(store, 1)};
  SILTFS_ASSIGN_OR_RETURN(const auto entries, env.ListDirectory(store));
  bool marked = false;
  for (const DirectoryEntry& entry : entries) {
    const std::string path = JoinPath(store, entry.name);
    const bool directory = entry.type == FileType::kDirectory;
    const bool file = entry.type == FileType::kRegular;
    if (directory && path == UnfinishedStorePath(store)) {
      SILTFS_ASSIGN_OR_RETURN(const auto inside, env.ListDirectory(path));
      if (!inside.empty()) return InTheWay(store, JoinPath(path, inside.front().name));
      marked = true;
    } else if (directory && path == MetadataPath(store)) {
      SILTFS_RETURN_IF_ERROR(CollectDirectory(env, store, path, IsDatabaseFile, remains));
    } else if (directory && (path == SegmentsDirectory(store) || path == IndexPath(store) ||
                             path == BucketCachePath(store))) {
      const auto none = [](std::string_view) { return false; };
      SILTFS_RETURN_IF_ERROR(CollectDirectory(env, store, path, none, remains));
    } else if (file && (path == superblocks[0] || path == superblocks[1])) {
      SILTFS_RETURN_IF_ERROR(CheckSuperblock(env, store, path == superblocks[0] ? 0 : 1));
      remains.superblocks.push_back(path);
    } else if (file &&
               (path == superblocks[0] + std::string(kReplacement) ||
                path == superblocks[1] + std::string(kReplacement) || path == LedgerPath(store) ||
                path == LedgerPath(store) + std::string(kReplacement) ||
                path == BucketConfigPath(store) ||
                path == BucketConfigPath(store) + std::string(kReplacement))) {
      remains.files.push_back(path);
    } else if (!file || path != LockPath(store)) {
      return InTheWay(store, path);
    }
  }
  if (marked) return Status::Ok();
  return Status(StatusCode::kNotEmpty, "the directory is not empty; nothing was changed").At(store);
}

}  // namespace

Status MarkUnfinished(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(env.CreateDirectory(UnfinishedStorePath(store)));
  Status synced = env.SyncDirectory(store);
  if (!synced.ok()) {
    env.RemoveDirectory(UnfinishedStorePath(store)).IgnoreError("the next mkfs removes it");
  }
  return synced;
}

Status MarkFinished(Env& env, const std::string& store) {
  SILTFS_RETURN_IF_ERROR(env.RemoveDirectory(UnfinishedStorePath(store)));
  return env.SyncDirectory(store);
}

Status RemoveUnfinishedStore(Env& env, const std::string& store) {
  Remains remains;
  SILTFS_RETURN_IF_ERROR(Collect(env, store, remains));
  // Superblocks are removed first, durably. Without a superblock, the remaining files are never
  // taken for a store.
  for (const std::string& path : remains.superblocks) SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
  if (!remains.superblocks.empty()) SILTFS_RETURN_IF_ERROR(env.SyncDirectory(store));
  for (const std::string& path : remains.files) SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
  for (const std::string& path : remains.directories)
    SILTFS_RETURN_IF_ERROR(env.RemoveDirectory(path));
  return Status::Ok();
}

}  // namespace siltfs
