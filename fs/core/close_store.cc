#include "fs/core/close_store.h"

#include <optional>
#include <utility>
#include <vector>

namespace siltfs {
namespace {

// Closing a store reduces its reserve to 1/kReserveShareAtRest of the stored bytes, but not below
// what the next opening needs (SpaceReserve::KeepOnly).
constexpr uint64_t kReserveShareAtRest = 128;

}  // namespace

Status CloseStore(const PartsToClose& parts) {
  // What a bucket lacks is shipped together with the last writes.
  SILTFS_RETURN_IF_ERROR(parts.metadata.CommitAllLocally());
  parts.reserve.Enter(SpaceReserve::Phase::kClosing);
  std::optional<Result<FileSystemStats>> stats;
  if (parts.maintenance != nullptr)
    stats = parts.maintenance->GetStats();  // needs the parts that Finish ends
  const bool sampled = stats && stats->ok();
  std::vector<Mutation> last;
  SILTFS_RETURN_IF_ERROR(parts.chunks.Finish(last));
  parts.jobs.recompressor().TakeOwed(last);
  if (sampled) {  // without statistics, the sample of the store's sizes is left out
    FileSystemStats& sizes = stats->value();
    sizes.stored_bytes = parts.chunks.totals().stored_bytes;
    if (auto sample = parts.maintenance->LastSizes(sizes)) last.push_back(*std::move(sample));
  }
  SILTFS_RETURN_IF_ERROR(parts.index.Close());
  if (parts.guide != nullptr)
    parts.guide->Close().IgnoreError("the next mount covers the segments again");
  if (parts.near_duplicates != nullptr) {
    parts.near_duplicates->Close().IgnoreError(
        "chunks that are not found as bases cost space only");
  }
  if (!last.empty()) SILTFS_RETURN_IF_ERROR(parts.metadata.WriteThrough(last));
  SILTFS_RETURN_IF_ERROR(parts.ids.EndMount(parts.chunks.next_segment_id()));
  parts.superblock.last_commit = parts.metadata.last_commit();
  SILTFS_RETURN_IF_ERROR(parts.metadata.Close());
  if (parts.replay != nullptr) SILTFS_RETURN_IF_ERROR(parts.replay->MarkIfUnfinished());
  parts.superblock.clean = true;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(parts.env, parts.store, parts.superblock));
  parts.reserve.KeepOnly(parts.chunks.totals().stored_bytes / kReserveShareAtRest);
  return Status::Ok();
}

}  // namespace siltfs
