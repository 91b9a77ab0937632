#include "fs/open/open_state.h"

#include <string>
#include <utility>
#include <vector>

#include "fs/chunks/chunk_parts.h"
#include "fs/chunks/chunk_store.h"
#include "fs/core/file_system_impl.h"
#include "fs/guide/segment_guide.h"
#include "fs/meta/metadata_store.h"
#include "fs/open/missing_index.h"
#include "fs/open/open_store_parts.h"
#include "fs/open/store_records.h"
#include "fs/recovery/block_replay.h"
#include "fs/recovery/segment_replacement.h"
#include "fs/snapshots/routed_file_system.h"

namespace siltfs {
namespace {

// A snapshot as a store that never changes.
class SnapshotKvStore final : public KvStore {
 public:
  explicit SnapshotKvStore(std::shared_ptr<const KvSnapshot> snapshot)
      : snapshot_(std::move(snapshot)) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return snapshot_->Get(key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override { return snapshot_; }
  Status WriteFrom(const std::function<void(MutationSink&)>& /*fill*/) override {
    return {StatusCode::kReadOnly, "the state of the store cannot be changed"};
  }
  uint64_t DiskBytes() const override { return 0; }
  Status CloseCleanly() override { return Status::Ok(); }

 private:
  const std::shared_ptr<const KvSnapshot> snapshot_;
};

// The entries of the chunks in open segments. They have no footers, so a search for each chunk
// would read all their blocks.
Result<std::vector<IndexEntry>> OpenEntries(const StoreIdentity& identity,
                                            const StoreRecords& records, const StateParts& parts,
                                            const FileSystemOptions& options) {
  SegmentRecords open;
  for (const auto& numbered : records.segments) {
    if (!numbered.second.sealed) open.push_back(numbered);
  }
  std::vector<IndexEntry> entries;
  ReplayOptions replay;
  replay.put = [&](std::span<const IndexEntry> some, uint64_t) {
    entries.insert(entries.end(), some.begin(), some.end());
    return Status::Ok();
  };
  replay.report = [&](const std::string& sentence) {
    if (options.report) options.report(sentence);
  };
  SILTFS_RETURN_IF_ERROR(ReplayBlocks(*parts.segments, identity, open, replay));
  return entries;
}

ChunkStoreOptions ChunkOptions(const FileSystemOptions& options, const StateParts& parts,
                               const StoreRecords& records) {
  ChunkStoreOptions chunks;
  chunks.store = options.store;
  chunks.segments = parts.segments;
  chunks.superblock = parts.superblock;
  chunks.read_only = true;
  chunks.guide = parts.guide;
  chunks.last_commit = records.last_commit;
  chunks.sha1_collisions = records.collisions;
  chunks.garbage = records.garbage;
  chunks.damage = records.damage;
  chunks.secondary = records.secondary;
  chunks.replacements = records.replacements;
  chunks.block_cache_bytes = options.block_cache_bytes;
  chunks.readahead_threads = options.readahead_threads;
  chunks.footer_cache_bytes = options.footer_cache_bytes;
  chunks.quiet_after = options.recompress_after;
  chunks.report = options.report;
  return chunks;
}

}  // namespace

Result<std::unique_ptr<FileSystem>> OpenState(Env& env, FileSystemOptions options,
                                              StateParts state) {
  options.read_only = true;
  auto kv = std::make_unique<SnapshotKvStore>(state.metadata);
  SILTFS_ASSIGN_OR_RETURN(StoreRecords records, ReadStoreRecords(*kv));
  const StoreIdentity identity{
      options.store, state.superblock.uuid, records.last_commit,
      state.superblock.deltas() ? records.secondary : std::vector<SegmentId>()};
  std::vector<Mutation> changes;  // only the writer makes them
  ResolveReplacements(*state.segments, identity, records.replacements, records.segments, changes);
  SILTFS_ASSIGN_OR_RETURN(auto unindexed, OpenEntries(identity, records, state, options));

  FileSystemImpl::Parts parts;
  parts.superblock = state.superblock;
  SILTFS_ASSIGN_OR_RETURN(parts.chunker_tables, MakeChunkerTables(state.superblock));
  parts.index = std::make_unique<MissingIndex>();
  MetadataOptions metadata;
  metadata.read_only = true;
  metadata.group_bytes = options.group_bytes;
  metadata.commit_interval = options.commit_interval;
  SILTFS_ASSIGN_OR_RETURN(parts.metadata, MetadataStore::Open(std::move(kv), metadata));
  SILTFS_ASSIGN_OR_RETURN(parts.chunk_parts,
                          ChunkParts::Open(env, *parts.index, ChunkOptions(options, state, records),
                                           records.segments, std::move(unindexed)));
  parts.chunks = std::make_unique<ChunkStore>(*parts.chunk_parts);
  const SnapshotDirectoryMode directory = options.snapshot_directory;
  auto live = std::make_unique<FileSystemImpl>(env, std::move(options), std::move(parts));
  SILTFS_RETURN_IF_ERROR(live->Start());
  SnapshotTrees& trees = live->snapshot_trees();
  OperationGate& gate = live->gate();
  RolledBackInodes& rolled_back = live->rolled_back();
  return std::unique_ptr<FileSystem>(
      std::make_unique<RoutedFileSystem>(std::move(live), gate, rolled_back, trees, directory,
                                         /*root=*/0, SnapshotTrees::kDirectory));
}

}  // namespace siltfs
