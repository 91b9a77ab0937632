#include "fs/versions/changed_keys.h"

#include "fs/versions/lineage_view.h"

namespace siltfs {

Status ForEachChangedKey(const KvSnapshot& metadata, const SnapshotBounds& older,
                         SnapshotNumber newer, std::string_view from,
                         const std::function<Result<bool>(const ChangedKey&)>& visit) {
  const std::string end = VersionListKey(newer, 0, {});
  const auto list = metadata.NewIteratorBelow(end);
  list->Seek(from.empty() ? VersionListKey(older.number, 0, {}) : std::string(from) + '\0');
  std::string key;
  while (list->Valid()) {
    const auto parts = ParseVersionListKey(list->key());
    if (!parts) return {StatusCode::kCorruption, "a list of versions is malformed"};
    if (parts->lineage != older.lineage) {  // as all versions that were kept for this snapshot
      list->Seek(VersionListKey(parts->snapshot + 1, 0, {}));
      continue;
    }
    // The older state does not show a version that was born later. So the key has changed again, or
    // belongs to a newer inode.
    if (parts->born >= older.number) {
      list->Seek(VersionListKey(parts->snapshot + 1, 0, {}));
      continue;
    }
    key = KeyWithoutLineage(parts->key);
    SILTFS_ASSIGN_OR_RETURN(const bool more,
                            visit({key, parts->key, parts->snapshot, list->key()}));
    if (!more) return Status::Ok();
    list->Next();
  }
  return list->status();
}

}  // namespace siltfs
