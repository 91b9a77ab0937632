#include "fs/snapshots/head_restore.h"

#include <algorithm>
#include <vector>

#include "fs/versions/version_keeper.h"

namespace siltfs {

Status RestoreHead(SnapshotPort& snapshots, LineagePort& lineages, LineageNumber lineage,
                   size_t most, const std::function<Status()>& check) {
  const Lineages all = lineages.AllLineages();
  const auto found = all.find(lineage);
  if (found == all.end() || !found->second.changed || found->second.incoming) return Status::Ok();
  const std::vector<NumberedSnapshot> existing = snapshots.Snapshots();
  const std::vector<SnapshotBounds> own = BoundsOf(existing, lineage);
  VersionRestore restore(own.empty() ? VersionRestore::Empty(lineage) : own.back(),
                         [](const InodeRecord&) {});
  for (bool more = true; more;) {
    SILTFS_RETURN_IF_ERROR(check());
    SILTFS_ASSIGN_OR_RETURN(more, snapshots.RestoreSome(restore, most, {}));
  }
  if (!own.empty()) return lineages.EndHeadRestore(lineage, own.back().number);
  // Its number must not be used again before the versions of its last snapshot are removed.
  const bool any = std::ranges::any_of(existing, [lineage](const NumberedSnapshot& snapshot) {
    return snapshot.record.lineage == lineage;
  });
  return any ? Status::Ok() : lineages.SetLineage(lineage, std::nullopt);
}

}  // namespace siltfs
