#include "fs/inodes/store_context.h"

#include <algorithm>

#include "fs/records/schema.h"

namespace siltfs {

Status StoreContext::CheckWritable() const {
  if (options_.read_only)
    return Status(StatusCode::kReadOnly, "is mounted read-only").At(options_.store);
  // If the chunk store has failed, metadata still accepts changes until its next commit fails for
  // this reason. These changes would be lost, so they are refused here.
  return chunks_.failure();
}

Result<SpaceInfo> StoreContext::GetSpace() const {
  SILTFS_ASSIGN_OR_RETURN(DiskSpace disk, env_.GetDiskSpace(options_.store));
  const Counters counters = metadata_.counters();
  SpaceInfo space;
  space.total_bytes = disk.total_bytes;
  space.free_bytes = disk.free_bytes;
  space.available_bytes = reserve_ ? reserve_->Usable(disk.available_bytes) : disk.available_bytes;
  space.inodes = static_cast<uint64_t>(counters[static_cast<size_t>(Counter::kFiles)] +
                                       counters[static_cast<size_t>(Counter::kDirectories)]);
  return space;
}

Result<SpaceInfo> StoreContext::GetContentSpace() const {
  SILTFS_ASSIGN_OR_RETURN(SpaceInfo space, GetSpace());
  if (options_.capacity_bytes == 0) return space;
  const uint64_t stored = chunks_.totals().stored_bytes;
  space.total_bytes = std::max(options_.capacity_bytes, stored);
  space.free_bytes = space.available_bytes = space.total_bytes - stored;
  return space;
}

Result<SpaceInfo> StoreContext::GetContentSpace(QuotaNumber quota) const {
  SILTFS_ASSIGN_OR_RETURN(SpaceInfo space, GetContentSpace());
  const auto state = quotas_->Find(quota);
  if (!state) return space;
  const auto left = [](uint64_t limit, int64_t used) {
    const auto taken = static_cast<uint64_t>(std::max<int64_t>(used, 0));
    return taken < limit ? limit - taken : 0;
  };
  const QuotaLimits& limits = state->record.limits;
  if (limits.bytes != 0) {
    space.total_bytes = limits.bytes;
    space.free_bytes = left(limits.bytes, state->usage.bytes);
    space.available_bytes = std::min(space.available_bytes, space.free_bytes);
  }
  space.inodes = static_cast<uint64_t>(std::max<int64_t>(state->usage.files, 0));
  if (limits.files != 0) space.inodes_left = left(limits.files, state->usage.files);
  return space;
}

}  // namespace siltfs
