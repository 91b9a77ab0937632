#include "fs/versions/snapshot_paths.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fs/records/path_finder.h"
#include "fs/records/schema.h"
#include "fs/records/snapshot_record.h"
#include "fs/versions/lineage_view.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
namespace {

using Named = std::map<FileVersion, FileName>;

constexpr size_t kMostNames = 4;
// Stands for the present state of a lineage, which its newest snapshots show.
constexpr SnapshotNumber kHead = std::numeric_limits<SnapshotNumber>::max();

// The snapshot of the next older version of the file's inode; 0 if there is none.
Result<SnapshotNumber> NextOlder(const KvSnapshot& metadata, const FileVersion& file) {
  const std::string key = InodeKey(file.inode);
  if (file.snapshot == kHead) {
    SILTFS_ASSIGN_OR_RETURN(const auto newest,
                            metadata.FirstIn(FirstVersionKey(key), EndOfVersionKeys(key)));
    const auto found = newest ? ParseVersionKey(newest->key) : std::nullopt;
    return found ? found->snapshot : SnapshotNumber{0};
  }
  const auto versions = metadata.NewIteratorBelow(EndOfVersionKeys(key));
  versions->Seek(VersionKey(key, file.snapshot));
  // If only the file's overlay has a version for this snapshot, it is not known how many older
  // snapshots show it, so only the newest one is named.
  if (!versions->Valid()) {
    SILTFS_RETURN_IF_ERROR(versions->status());
    return file.snapshot - 1;
  }
  auto parts = ParseVersionKey(versions->key());
  if (!parts || parts->key != key || parts->snapshot != file.snapshot) return file.snapshot - 1;
  versions->Next();
  SILTFS_RETURN_IF_ERROR(versions->status());
  if (!versions->Valid()) return SnapshotNumber{0};
  parts = ParseVersionKey(versions->key());
  return parts && parts->key == key ? parts->snapshot : 0;
}

std::string Describe(const std::vector<const NumberedSnapshot*>& shown) {
  if (shown.empty()) return "a snapshot that was removed";
  std::string names = shown.size() == 1 ? "the snapshot " : "the snapshots ";
  for (size_t i = 0; i < shown.size() && i < kMostNames; ++i)
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", shown[i]->record.name);
  if (shown.size() > kMostNames) names += fmt::format(" and {} more", shown.size() - kMostNames);
  return names;
}

Status AddPaths(const KvSnapshot& view, const std::set<FileVersion>& files,
                const std::string& directory, Named& named) {
  std::set<uint64_t> inodes;
  for (const FileVersion& file : files) inodes.insert(WithoutLineage(file.inode));
  const auto paths = FindPaths(view, inodes);
  if (paths.status().Is(StatusCode::kCorruption)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(paths.status());
  for (const FileVersion& file : files) {
    const auto path = paths->find(WithoutLineage(file.inode));
    if (path != paths->end()) named[file].path = directory + path->second;
  }
  return Status::Ok();
}

}  // namespace

Result<Named> NameFiles(const KvSnapshot& metadata, const std::set<FileVersion>& files,
                        std::string_view directory) {
  Named named;
  std::set<FileVersion> live;
  std::map<const NumberedSnapshot*, std::set<FileVersion>> by_snapshot;
  SILTFS_ASSIGN_OR_RETURN(const auto snapshots, ReadIntactSnapshots(metadata));
  for (const FileVersion& wanted : files) {
    FileName& name = named[wanted];
    FileVersion file = wanted;
    if (file.snapshot == 0) {
      if (LineageOf(file.inode) == kLiveLineage) {
        live.insert(file);
        continue;
      }
      file.snapshot = kHead;
    }
    SILTFS_ASSIGN_OR_RETURN(const SnapshotNumber older, NextOlder(metadata, file));
    std::vector<const NumberedSnapshot*> shown;
    const NumberedSnapshot* newest = nullptr;
    for (const NumberedSnapshot& snapshot : snapshots) {
      if (snapshot.record.removing || snapshot.number > file.snapshot) continue;
      const SnapshotBounds bounds = BoundsOf(snapshot);
      if (bounds.lineage != LineageOf(file.inode) || file.inode >= bounds.inode_limit) continue;
      newest = &snapshot;
      if (snapshot.number > older) shown.push_back(&snapshot);
    }
    if (shown.empty() && older + 1 == file.snapshot && newest != nullptr) shown = {newest};
    name.snapshots = Describe(shown);
    if (!shown.empty()) by_snapshot[shown.back()].insert(wanted);
  }
  // The views share their argument, which outlives them.
  const std::shared_ptr<const KvSnapshot> present(&metadata, [](const KvSnapshot*) {});
  if (!live.empty())
    SILTFS_RETURN_IF_ERROR(AddPaths(*MakeLineageView(present, kLiveLineage), live, "", named));
  for (const auto& [snapshot, shown] : by_snapshot) {
    const auto view = MakeSnapshotView(present, BoundsOf(*snapshot));
    SILTFS_RETURN_IF_ERROR(
        AddPaths(*view, shown, fmt::format("{}/{}", directory, snapshot->record.name), named));
  }
  return named;
}

}  // namespace siltfs
