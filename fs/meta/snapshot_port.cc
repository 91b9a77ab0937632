#include "fs/meta/snapshot_port.h"

#include <fmt/format.h>

#include <utility>

namespace siltfs {

Result<NumberedSnapshot> SnapshotPort::FindSnapshot(uint64_t number) const {
  for (NumberedSnapshot& snapshot : Snapshots()) {
    if (snapshot.number == number && !snapshot.record.removing) return std::move(snapshot);
  }
  return Status(StatusCode::kStale, fmt::format("snapshot {} was removed", number));
}

Status CheckRestorable(const SnapshotRecord& snapshot) {
  if (snapshot.lineage == kLiveLineage) return Status::Ok();
  return {StatusCode::kInvalidArgument,
          "the snapshot was received from another store, so the files cannot be rolled back to it; "
          "a clone of it shows its files"};
}

}  // namespace siltfs
