#include "fs/bucket/known_segments.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/segments/segment_tables.h"
#include "store/bucket/bucket_names.h"
#include "store/segment/segment_files.h"

namespace siltfs {
namespace {

Result<std::vector<DirectoryEntry>> Entries(Env& env, const std::string& directory) {
  auto entries = env.ListDirectory(directory);
  if (entries.status().Is(StatusCode::kNotFound)) return std::vector<DirectoryEntry>();
  return entries;
}

}  // namespace

Result<KnownSegments> ReadKnownSegments(const KvSnapshot& metadata) {
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords records, ReadSegmentRecords(metadata));
  SILTFS_ASSIGN_OR_RETURN(const SegmentRecords intents, ReadReplacements(metadata));
  KnownSegments known;
  for (const auto& [id, record] : records)
    known[id] = {.sealed = record.sealed, .length = record.length, .intended = std::nullopt};
  for (const auto& [id, record] : intents) {
    const auto found = known.find(id);
    if (found != known.end()) found->second.intended = record.length;
  }
  return known;
}

Result<LocalStore> ReadLocalStore(Env& env, const std::string& store,
                                  const Superblock& superblock) {
  LocalStore local;
  local.uuid = superblock.uuid;
  {
    SILTFS_ASSIGN_OR_RETURN(const auto kv, OpenExistingMetadata(env, superblock, store,
                                                                KvStoreOptions::Mode::kReadOnly));
    const auto snapshot = kv->Snapshot();
    SILTFS_ASSIGN_OR_RETURN(local.segments, ReadKnownSegments(*snapshot));
    SILTFS_ASSIGN_OR_RETURN(local.position, ReadPosition(*snapshot));
    SILTFS_ASSIGN_OR_RETURN(local.floors, ReadEpochFloors(*snapshot));
  }
  SILTFS_ASSIGN_OR_RETURN(const auto files, Entries(env, FilesDirectory(BucketCachePath(store))));
  for (const DirectoryEntry& entry : files) {
    const auto name = ParseLocalFileName(entry.name);
    if (!name || name->kind != LocalFileKind::kWaiting) continue;
    uint64_t& generation = local.waiting[name->content.id.segment];
    generation = std::max(generation, name->content.id.generation);
  }
  SILTFS_ASSIGN_OR_RETURN(const auto removed,
                          Entries(env, RemovedDirectory(BucketCachePath(store))));
  for (const DirectoryEntry& entry : removed) {
    const auto tombstone = ParseTombstoneName(entry.name);
    if (!tombstone) continue;
    uint64_t& generation = local.removed[tombstone->id.segment];
    generation = std::max(generation, tombstone->id.generation);
  }
  SILTFS_ASSIGN_OR_RETURN(const SegmentListing listing, ListSegments(env, store));
  local.files.insert(listing.ids.begin(), listing.ids.end());
  return local;
}

}  // namespace siltfs
