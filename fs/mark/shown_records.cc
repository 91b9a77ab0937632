#include "fs/mark/shown_records.h"

#include <utility>

#include "fs/records/lineage.h"

namespace siltfs {
namespace {

using Visit =
    std::function<Status(std::string_view key, std::string_view value, const ShownBy& shown)>;

Status VisitLineage(const KvSnapshot& metadata, Table table, LineageNumber lineage,
                    const std::vector<SnapshotBounds>& snapshots, Pacer& pacer,
                    const Visit& visit) {
  std::vector<SnapshotBounds> own;
  std::vector<size_t> places;  // of these snapshots among all
  for (size_t i = 0; i < snapshots.size(); ++i) {
    if (snapshots[i].lineage != lineage) continue;
    own.push_back(snapshots[i]);
    places.push_back(i);
  }
  const size_t live = snapshots.size();
  // Only snapshots show the head of a lineage. What they do not show is being received.
  const bool shown_itself = lineage == kLiveLineage || own.empty();
  const KeyRange range = RangeOfLineage(table, lineage);
  return ForEachShownValue(
      metadata, range.begin, range.end, own,
      [&](std::string_view key, std::string_view value, const ShownBy& shown) -> Status {
        SILTFS_RETURN_IF_ERROR(pacer.Step(Pacer::kRecordWork));
        const size_t last = shown.last < own.size() || shown_itself || shown.first == own.size()
                                ? shown.last
                                : own.size() - 1;
        Status visited = visit(key, value,
                               {.first = shown.first < own.size() ? places[shown.first] : live,
                                .last = last < own.size() ? places[last] : live});
        if (visited.Is(StatusCode::kCorruption))
          return std::move(visited).At(NameOfOwner(table, key));
        return visited;
      });
}

}  // namespace

Status ForEachShownRecord(const KvSnapshot& metadata, Table table,
                          const std::vector<SnapshotBounds>& snapshots, Pacer& pacer,
                          const Visit& visit) {
  SILTFS_ASSIGN_OR_RETURN(const Lineages lineages, ReadLineages(metadata));
  SILTFS_RETURN_IF_ERROR(VisitLineage(metadata, table, kLiveLineage, snapshots, pacer, visit));
  for (const auto& [lineage, record] : lineages)
    SILTFS_RETURN_IF_ERROR(VisitLineage(metadata, table, lineage, snapshots, pacer, visit));
  return Status::Ok();
}

}  // namespace siltfs
