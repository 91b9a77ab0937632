#include "tests/crash/model_quotas.h"

namespace siltfs::testing {
namespace {

QuotaInfo InfoOf(InodeNumber directory, const WantedLimits& limits) {
  return {
      .directory = directory, .path = {}, .bytes_limit = limits.bytes, .files_limit = limits.files};
}

}  // namespace

Result<QuotaInfo> ModelQuotas::Set(InodeNumber directory, const WantedLimits& limits,
                                   const std::function<Status()>&) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode* const found, inodes_.FindDirectory(directory));
  inodes_.BeginQuota(*found, limits);
  return InfoOf(directory, limits);
}

Status ModelQuotas::Remove(InodeNumber directory) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(MemoryInode* const found, inodes_.FindDirectory(directory));
  if (!found->limits) return {StatusCode::kNoAttribute, "has no quota"};
  inodes_.EndQuota(*found);
  return Status::Ok();
}

Result<std::vector<QuotaInfo>> ModelQuotas::List() {
  const MutexLock lock(mutex_);
  std::vector<QuotaInfo> list;
  for (const auto& [number, inode] : inodes_.all()) {
    if (inode.limits) list.push_back(InfoOf(number, *inode.limits));
  }
  return list;
}

Result<std::optional<QuotaInfo>> ModelQuotas::Of(InodeNumber inode) {
  const MutexLock lock(mutex_);
  SILTFS_ASSIGN_OR_RETURN(const MemoryInode* const found, inodes_.Find(inode));
  if (!found->limits) return std::optional<QuotaInfo>();
  return std::optional(InfoOf(inode, *found->limits));
}

}  // namespace siltfs::testing
