#include "fs/meta/metadata_store.h"

#include <algorithm>
#include <utility>

#include "fs/meta/commit_records.h"
#include "fs/meta/grouped_store.h"

namespace siltfs {
namespace {

// Longer commit intervals are reduced to this one, so that no deadline exceeds the range of Time.
constexpr std::chrono::milliseconds kLongestInterval = std::chrono::hours(24 * 365);

}  // namespace

Status MetadataStore::CommitNow() {
  SILTFS_RETURN_IF_ERROR(WaitForRoom());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t number, Join());
  return Commit(number);
}

Result<std::unique_ptr<MetadataStore>> MetadataStore::Open(std::unique_ptr<KvStore> kv,
                                                           MetadataOptions options) {
  if (options.group_bytes == 0 || options.commit_interval.count() < 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the size of a group must not be 0, nor the commit interval negative");
  }
  options.commit_interval = std::min(options.commit_interval, kLongestInterval);
  SILTFS_ASSIGN_OR_RETURN(const uint64_t last_commit, LoadCommitNumber(*kv));
  SILTFS_ASSIGN_OR_RETURN(const Counters counters, LoadCounters(*kv, last_commit));
  SILTFS_ASSIGN_OR_RETURN(SnapshotState snapshots, SnapshotState::Read(*kv->Snapshot()));
  return std::unique_ptr<MetadataStore>(std::make_unique<GroupedStore>(
      std::move(kv), options, last_commit, counters, std::move(snapshots)));
}

}  // namespace siltfs
