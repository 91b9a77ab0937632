#include "fs/check/check_store.h"

#include <utility>

#include "chunker/chunk_namer.h"
#include "fs/check/base_finder.h"
#include "fs/check/check_context.h"
#include "fs/check/chunk_finder.h"
#include "fs/check/content_check.h"
#include "fs/check/delta_check.h"
#include "fs/check/index_check.h"
#include "fs/check/metadata_check.h"
#include "fs/check/segment_check_run.h"
#include "fs/check/superblock_check.h"
#include "fs/open/store_layout.h"
#include "store/env/space_reserve.h"

namespace siltfs {
namespace {

// Locks a store that has a lock file; returns null for other stores. A store without a lock file,
// or with another object in its place, is not in use. No lock file is made, because a check must
// change nothing.
Result<std::unique_ptr<FileLock>> Lock(Env& env, const std::string& path) {
  const auto info = env.GetFileInfo(path);
  if (info.ok() && info->type == FileType::kRegular) return env.LockFile(path);
  if (info.ok() || info.status().Is(StatusCode::kNotFound) ||
      info.status().Is(StatusCode::kNotADirectory)) {
    return std::unique_ptr<FileLock>();
  }
  return info.status();
}

// Reports an object that is not a regular file in the place of the lock file, because it prevents a
// mount. A missing lock file is no finding, because the next mount makes the file.
void CheckLock(CheckContext& context, const std::string& path) {
  const auto info = context.env.GetFileInfo(path);
  if (!info.ok() || info->type == FileType::kRegular) return;
  context.Report({.code = "lock",
                  .path = path,
                  .message = "is not a file, so the store cannot be locked for a mount"});
}

// Reports an object that is not a directory in the place of the reserve's directory. A missing
// reserve is no finding.
Status CheckReserve(CheckContext& context, const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(const bool usable, SpaceReserve::IsDirectoryOrNothing(context.env, path));
  if (usable) return Status::Ok();
  context.Report({.code = "reserve",
                  .path = path,
                  .message = "is not a directory; the next mount makes it again"});
  return Status::Ok();
}

}  // namespace

Result<CheckReport> CheckStore(Env& env, const CheckOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto lock, Lock(env, LockPath(options.store)));
  return CheckLockedStore(env, options);
}

Result<CheckReport> CheckLockedStore(Env& env, const CheckOptions& options) {
  CheckContext context(env, options);
  SILTFS_ASSIGN_OR_RETURN(const bool usable, CheckSuperblock(context));
  CheckLock(context, LockPath(options.store));
  SILTFS_RETURN_IF_ERROR(CheckReserve(context, ReservePath(options.store)));
  if (!usable) return context.report();
  SILTFS_RETURN_IF_ERROR(OpenMetadata(context));
  const auto begin = [&context](std::string_view phase) {
    context.Progress({.phase = phase, .done = 0, .total = 0});
  };
  begin("metadata");
  SILTFS_RETURN_IF_ERROR(CheckMetadata(context));
  SILTFS_RETURN_IF_ERROR(OpenCheckedIndex(context));
  ChunkFinder finder(context);
  SILTFS_RETURN_IF_ERROR(CheckAllSegments(context, finder));
  SILTFS_ASSIGN_OR_RETURN(ChunkNamer namer, ChunkNamer::Create(context.superblock.uuid.bytes));
  BaseFinder bases(context, finder, {std::move(namer), context.superblock.tag_secret});
  if (context.superblock.deltas()) {
    begin("deltas");
    SILTFS_RETURN_IF_ERROR(CheckDeltas(context, finder, bases));
  }
  begin("index");
  SILTFS_RETURN_IF_ERROR(CheckIndex(context));
  SILTFS_RETURN_IF_ERROR(CheckGuide(context));
  SILTFS_RETURN_IF_ERROR(CheckLsh(context));
  begin("contents");
  SILTFS_RETURN_IF_ERROR(CheckContents(context, finder, bases));
  return context.report();
}

}  // namespace siltfs
