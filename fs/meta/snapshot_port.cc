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

}  // namespace siltfs
