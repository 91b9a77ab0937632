// FileSystem::Open: locks, checks and recovers a store, and puts its parts together.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "chunker/parameters.h"
#include "fs/chunks/chunk_parts.h"
#include "fs/chunks/index_comparison.h"
#include "fs/core/file_system_impl.h"
#include "fs/core/index_replay.h"
#include "fs/core/maintenance_jobs.h"
#include "fs/deltas/open_near_duplicates.h"
#include "fs/guide/guide_updater.h"
#include "fs/guide/segment_guide.h"
#include "fs/mark/reference_sorter.h"
#include "fs/meta/open_kv_store.h"
#include "fs/open/missing_index.h"
#include "fs/open/open_store_parts.h"
#include "fs/open/segment_check.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/open/store_records.h"
#include "fs/records/schema.h"
#include "fs/recovery/block_replay.h"
#include "fs/recovery/segment_recovery.h"
#include "fs/recovery/segment_replacement.h"
#include "fs/segments/damage_list.h"
#include "fs/snapshots/routed_file_system.h"
#include "index/open_index.h"
#include "store/env/reserve_env.h"
#include "store/segment/segment_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

// A collection may fill at least this many bytes of the data reserve with copies. To begin, a
// collection needs a little less than this. The rest of the data reserve is for the index, for
// copies that wait in blocks, for the footers of the segments with the copies, and for the next
// collection. When this rest was only 1 MiB, the last copy of a collection met a full disk, and the
// collection lost all its copies.
constexpr uint64_t kLeastForCopies = 5u << 20;
// A collection leaves this many bytes of the reserve and the free space to metadata and the index.
constexpr uint64_t kRoomForOthers = 8u << 20;

// Removes the files of segments that garbage collection had removed from metadata when the store
// was last open.
Status RemoveSegments(SegmentStore& segments, const std::string& store, const StoreRecords& records,
                      std::vector<Mutation>& changes) {
  const std::map<SegmentId, SegmentRecord> there(records.segments.begin(), records.segments.end());
  for (const SegmentId id : records.removed) {
    if (there.contains(id)) {
      return Status(StatusCode::kCorruption,
                    fmt::format("metadata lists segment {} both as present and as removed", id))
          .At(MetadataPath(store));
    }
    SILTFS_RETURN_IF_ERROR(segments.Remove(id));
    changes.push_back({RemovedSegmentKey(id), std::nullopt});
  }
  return Status::Ok();
}

// Removes the notes of segments that do not exist. Such a segment was removed after its note was
// written, or a crash came after the note was written and before the segment was made.
void ForgetNotesOfGone(StoreRecords& records, std::vector<Mutation>& changes) {
  const std::map<SegmentId, SegmentRecord> there(records.segments.begin(), records.segments.end());
  std::erase_if(records.secondary, [&](SegmentId id) {
    if (there.contains(id)) return false;
    changes.push_back({SecondaryKey(id), std::nullopt});
    return true;
  });
  std::erase_if(records.victims, [&](SegmentId id) { return !there.contains(id); });
}

// For a read-only store, parts.ids and parts.reserve are null, and so are the options with these
// names and the option `metadata`.
ChunkStoreOptions StoreOptions(const FileSystemOptions& options, const StoreRecords& records,
                               const FileSystemImpl::Parts& parts,
                               std::shared_ptr<SegmentStore> segments) {
  ChunkStoreOptions chunk_options;
  chunk_options.store = options.store;
  chunk_options.segments = std::move(segments);
  chunk_options.superblock = parts.superblock;
  chunk_options.read_only = options.read_only;
  chunk_options.ids = parts.ids.get();
  chunk_options.metadata = options.read_only ? nullptr : parts.metadata.get();
  chunk_options.reserve = parts.reserve.get();
  chunk_options.guide = parts.guide.get();
  chunk_options.last_commit = records.last_commit;
  chunk_options.sha1_collisions = records.collisions;
  chunk_options.garbage = records.garbage;
  chunk_options.damage = records.damage;
  chunk_options.found_damaged_blocks = records.found_damaged_blocks;
  chunk_options.secondary = records.secondary;
  chunk_options.replacements = records.replacements;
  chunk_options.worker_threads = options.worker_threads;
  chunk_options.pipeline_bytes = options.pipeline_bytes;
  if (options.dense_when_idle) chunk_options.idle_block_plain_bytes = kRecompressedBlockBytes;
  chunk_options.block_cache_bytes = options.block_cache_bytes;
  chunk_options.readahead_threads = options.readahead_threads;
  chunk_options.footer_cache_bytes = options.footer_cache_bytes;
  chunk_options.quiet_after = options.recompress_after;
  chunk_options.report = options.report;
  return chunk_options;
}

// Null if the store is without deltas, or if the files of the choice of bases cannot be used.
std::unique_ptr<NearDuplicates> OpenChoiceOfBases(Env& disk, const FileSystemOptions& options,
                                                  const FileSystemImpl::Parts& parts) {
  if (!parts.superblock.deltas()) return nullptr;
  ChunkParts& chunks = *parts.chunk_parts;
  NearDuplicates::Options choice;
  choice.is_excluded = [&chunks](SegmentId id) {
    return chunks.victims.Contains(id) || chunks.gone->Contains(id) || chunks.damage.HasAnyOf(id);
  };
  choice.has_secondary = [&chunks](SegmentId id) { return chunks.secondary.Contains(id); };
  choice.report = options.report;
  // Not with the Env that takes space from the reserve, because a store works without the choice.
  return OpenNearDuplicates(
      disk, LshPath(options.store), parts.superblock, parts.chunker_tables, *parts.index,
      *chunks.segments, *chunks.idle_blocks, chunks.bases,
      [&chunks](SegmentId id) { return chunks.gone->Contains(id); }, std::move(choice));
}

MaintenanceJobs::Options JobOptions(const FileSystemOptions& options, const StoreRecords& records,
                                    const SpaceReserve& reserve) {
  MaintenanceJobs::Options jobs;
  jobs.spill_directory = SpillPath(options.store);
  jobs.scrub = records.scrub;
  jobs.chooser = options.base_chooser;
  jobs.room_for_others = kRoomForOthers;
  if (options.keep_reserve) {
    const uint64_t data = reserve.data_bytes();
    jobs.room_for_others = std::min(jobs.room_for_others, data - std::min(data, kLeastForCopies));
  }
  return jobs;
}

Result<std::unique_ptr<MetadataStore>> OpenMetadata(Env& disk, const FileSystemOptions& options,
                                                    const Superblock& superblock,
                                                    std::unique_ptr<KvStore> kv) {
  MetadataOptions metadata_options;
  metadata_options.commit_interval = options.commit_interval;
  metadata_options.quiet_interval = options.quiet_interval;
  // The engine writes a group in one write, so the engine's limit for a write applies to groups. A
  // group exceeds this limit only by the mutations of operations that already run when the group
  // becomes full. Deferred changes of contents have a limit of their own, options.group_bytes,
  // which may be larger: the later they are saved, the fewer mutations they make.
  metadata_options.group_bytes = options.group_bytes;
  if (const auto space = disk.GetDiskSpace(options.store); !options.read_only && space.ok()) {
    SILTFS_ASSIGN_OR_RETURN(const MetadataEngine* const engine,
                            FindMetadataEngine(superblock.metadata_engine));
    metadata_options.group_bytes =
        std::min<uint64_t>(options.group_bytes, engine->most_write_bytes(space->total_bytes));
  }
  metadata_options.read_only = options.read_only;
  return MetadataStore::Open(std::move(kv), metadata_options);
}

Result<std::unique_ptr<SpaceReserve>> OpenReserve(Env& disk, const FileSystemOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const DiskSpace space, disk.GetDiskSpace(options.store));
  SpaceReserve::Options reserve = SpaceReserve::For(space.total_bytes);
  reserve.store = options.store;
  reserve.directory = ReservePath(options.store);
  if (!options.keep_reserve) reserve.pieces = 0;
  return SpaceReserve::Open(disk, reserve);
}

// The index is a cache of the segments' contents. If it is missing or damaged, a writable mount
// begins an empty one, and the replay of all blocks fills it. A read-only mount keeps the entries
// in memory.
Result<std::unique_ptr<ChunkIndex>> OpenStoreIndex(Env& env, const FileSystemOptions& options,
                                                   const Superblock& superblock,
                                                   const ReportFinding& report) {
  const IndexOptions index_options = IndexOptionsOf(superblock, options);
  auto index = OpenIndex(env, index_options);
  const bool lost = !index.ok() && (index.status().Is(StatusCode::kCorruption) ||
                                    index.status().Is(StatusCode::kNotFound) ||
                                    index.status().Is(StatusCode::kNotADirectory) ||
                                    index.status().Is(StatusCode::kIsADirectory));
  if (!lost) return index;
  // A store that was restored from a bucket has no index yet, so its absence is not an error of a
  // path.
  const std::string cause =
      index.status().Is(StatusCode::kNotFound) ? "it is missing" : index.status().ToString();
  if (options.read_only) {
    report(fmt::format("the segments are read instead of the chunk index, which cannot be used: {}",
                       cause));
    return std::unique_ptr<ChunkIndex>(std::make_unique<MissingIndex>());
  }
  report(fmt::format("the chunk index cannot be used and is rebuilt from the segments: {}", cause));
  SILTFS_RETURN_IF_ERROR(EmptyIndexDirectory(env, options.store));
  return OpenIndex(env, index_options);
}

Status GoOn(const FileSystemOptions& options) {
  if (!options.interrupted || !options.interrupted()) return Status::Ok();
  return Status(StatusCode::kInterrupted, "opening the store was interrupted").At(options.store);
}

uint64_t ChunksAfter(const SegmentRecords& records, uint64_t sequence) {
  uint64_t chunks = 0;
  for (const auto& [id, record] : records) {
    if (record.last_sequence > sequence) chunks += record.chunks;
  }
  return chunks;
}

std::unique_ptr<SegmentGuide> OpenGuide(Env& disk, const FileSystemOptions& options,
                                        const StoreRecords& records) {
  if (!options.keep_guide) return nullptr;
  // Not with the Env that takes space from the reserve, because a store works without the guide.
  SegmentGuide::Options guide;
  guide.directory = GuidePath(options.store);
  guide.read_only = options.read_only;
  guide.report = options.report;
  guide.filters.shape = options.guide_shape;
  return SegmentGuide::Open(disk, std::move(guide), records.segments);
}

// Whether a writable mount can be ready before the index has the entries of all blocks. Makes the
// guide cover all segments, so that reads find all chunks. This reads only footers.
Result<bool> CanReplayLater(const FileSystemOptions& options, const StoreIdentity& identity,
                            SegmentStore& segments, SegmentGuide* guide,
                            const ReportFinding& report) {
  if (guide == nullptr || !guide->usable() || options.read_only) return false;
  const Status covered =
      CoverWaiting(*guide, segments, identity.uuid, [&options](uint64_t) { return GoOn(options); });
  if (covered.Is(StatusCode::kInterrupted)) return covered;
  if (!covered.ok()) {
    report(
        fmt::format("the mount waits for the rebuild of the chunk index: {}", covered.ToString()));
  }
  return covered.ok();
}

// The segments whose entries a read-only mount needs in memory: those that the guide does not find.
SegmentRecords OnlyUncovered(const SegmentRecords& records, const SegmentGuide& guide) {
  SegmentRecords uncovered;
  for (const auto& numbered : records) {
    if (!guide.Covers(numbered.first)) uncovered.push_back(numbered);
  }
  return uncovered;
}

// Puts back the entries of blocks that the index lost in a crash, or returns them if the mount is
// read-only. Blocks that cannot be read are added to the damage list.
Result<std::vector<IndexEntry>> Replay(SegmentStore& segments, const FileSystemOptions& options,
                                       const StoreIdentity& identity, StoreRecords& records,
                                       KvStore& kv, ChunkIndex& index, const SegmentGuide* guide,
                                       const ReportFinding& report) {
  std::vector<IndexEntry> aside;
  DamageList damage(records.damage);
  ReplayedEntries replayed(index, records.segments, records.secondary, damage);
  auto put = [&](std::span<const IndexEntry> entries, uint64_t sequence) {
    if (!options.read_only) return replayed.Put(entries, sequence);
    aside.insert(aside.end(), entries.begin(), entries.end());
    return Status::Ok();
  };
  ReplayOptions replay;
  replay.durable_sequence = index.durable_sequence();
  replay.put = put;
  replay.report = report;
  if (options.opening != nullptr) {
    const auto lacks = [&](const auto& numbered) {
      return numbered.second.last_sequence > replay.durable_sequence;
    };
    options.opening->Begin("segments",
                           static_cast<uint64_t>(std::ranges::count_if(records.segments, lacks)));
  }
  replay.segment_done = [&options](SegmentId) {
    if (options.opening != nullptr) options.opening->Add();
    return GoOn(options);
  };
  replay.on_damage = [&](const DamagedBlock& lost) {
    if (damage.Add(lost)) ++records.found_damaged_blocks;
    return options.read_only ? Status::Ok() : WriteDamage(damage, kv);
  };
  const bool guided =
      options.read_only && guide != nullptr && guide->usable() &&
      ChunksAfter(records.segments, replay.durable_sequence) > options.most_replayed_at_open;
  SILTFS_RETURN_IF_ERROR(
      ReplayBlocks(segments, identity,
                   guided ? OnlyUncovered(records.segments, *guide) : records.segments, replay));
  records.damage = damage.All();
  return aside;
}

// Compares copies with the index when it has the entries of all blocks. The function may be called
// later, from another thread.
std::function<Status()> CompareCopies(ChunkParts& parts, const StoreRecords& records) {
  return [&parts, notes_kept = records.notes_kept, victims = records.victims,
          crashed = !records.ids.clean, segments = records.segments]() -> Status {
    if (!notes_kept) return BeginNotes(parts, segments);
    return victims.empty() ? Status::Ok() : CompareVictims(parts, victims, crashed);
  };
}

// Fills the reserve again with the space that a failed attempt to open the store took from it and
// left free. So the next attempt gets this space, and no other program does. The reserve leaves its
// spare_bytes free.
void FillReserveAgain(Env& disk, const FileSystemOptions& options) {
  const auto lock = disk.LockFile(LockPath(options.store));
  if (!lock.ok()) return;
  const auto reserve = OpenReserve(disk, options);
  if (reserve.ok()) (*reserve)->Fill().IgnoreError("the attempt failed because the disk is full");
}

}  // namespace

Result<std::shared_ptr<const ChunkerTables>> MakeChunkerTables(const Superblock& superblock) {
  SILTFS_ASSIGN_OR_RETURN(RabinPolynomial polynomial,
                          RabinPolynomial::Parse(superblock.rabin_polynomial));
  const ChunkerParameters parameters{.min = superblock.chunk_min,
                                     .avg = superblock.chunk_avg,
                                     .max = superblock.chunk_max,
                                     .window = kWindowSize,
                                     .polynomial = polynomial};
  return ChunkerTables::Create(parameters);
}

Result<FileSystemImpl::Parts> OpenStoreParts(Env& disk, const FileSystemOptions& options,
                                             StoreContent content) {
  const bool read_only = options.read_only;
  const StoreAccess access = read_only ? StoreAccess::kReadOnly : StoreAccess::kReadWrite;
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state,
                          ReadSuperblock(disk, options.store, access, content));
  FileSystemImpl::Parts parts;
  parts.reserve_directory = ReservePath(options.store);
  SILTFS_ASSIGN_OR_RETURN(parts.lock, disk.LockFile(LockPath(options.store)));
  if (!read_only) {
    SILTFS_ASSIGN_OR_RETURN(parts.reserve, OpenReserve(disk, options));
    if (options.keep_reserve) {
      parts.env = std::make_unique<ReserveEnv>(disk, *parts.reserve);
      parts.metadata_env =
          std::make_unique<ReserveEnv>(disk, *parts.reserve, SpaceReserve::Use::kMetadata);
    }
    ReferenceSorter::RemoveLeftovers(disk, SpillPath(options.store))
        .IgnoreError("the next collection reports it");
  }
  Env& env = parts.env ? *parts.env : disk;
  Env& metadata_env = parts.metadata_env ? *parts.metadata_env : disk;
  // Read the superblock again: another process may have had the lock and written the superblock
  // since it was first read.
  SILTFS_ASSIGN_OR_RETURN(state, ReadSuperblock(env, options.store, access, content));
  parts.superblock = state.superblock;
  SILTFS_RETURN_IF_ERROR(CheckPlaceIsKnown(parts.superblock, options.segments, options.store));
  SILTFS_ASSIGN_OR_RETURN(parts.chunker_tables, MakeChunkerTables(parts.superblock));
  const ReportFinding report = [&options](const std::string& finding) {
    if (options.report) options.report(finding);
  };

  if (options.opening != nullptr) options.opening->Begin("metadata");
  SILTFS_ASSIGN_OR_RETURN(
      std::unique_ptr<KvStore> kv,
      OpenExistingMetadata(
          metadata_env, parts.superblock, options.store,
          read_only ? KvStoreOptions::Mode::kReadOnly : KvStoreOptions::Mode::kOpen,
          options.metadata_layer ? BucketPosition::kKeep : BucketPosition::kForget));
  if (options.metadata_layer) {
    SILTFS_ASSIGN_OR_RETURN(kv, options.metadata_layer(std::move(kv)));
  }
  auto read = ReadStoreRecords(*kv);
  if (!read.ok()) return std::move(read).status().At(MetadataPath(options.store));
  StoreRecords records = std::move(read).value();
  SILTFS_RETURN_IF_ERROR(CheckCommit(state, records.last_commit, options.store));

  // Segments for moved chunks are noted (SegmentLog::Options::before_moved).
  const StoreIdentity identity{
      options.store,       parts.superblock.uuid,
      records.last_commit, parts.superblock.deltas() ? records.secondary : std::vector<SegmentId>(),
      records.floors,      records.former};
  std::vector<Mutation> changes;
  const std::shared_ptr<SegmentStore> segments =
      OpenSegmentStore(env, options.store, options.segments);
  const uint64_t unanswered = segments->UnansweredReads();
  ResolveReplacements(*segments, identity, records.replacements, records.segments, changes);
  SILTFS_RETURN_IF_ERROR(CheckSegments(*segments, identity, records.ids, records.segments));
  SILTFS_RETURN_IF_ERROR(CheckAnswered(*segments, unanswered));
  if (!read_only) {
    SILTFS_RETURN_IF_ERROR(RemoveSegments(*segments, options.store, records, changes));
    if (!records.ids.clean || !records.replacements.empty()) {
      SILTFS_RETURN_IF_ERROR(
          RecoverSegments(env, *segments, identity, records.segments, changes, report));
    }
    SILTFS_RETURN_IF_ERROR(PutSealedSegments(*segments, records.segments));
    ForgetNotesOfGone(records, changes);
    // The layer of a mount notes them itself. A repair has none.
    if (!records.floors.empty() && !options.metadata_layer)
      SILTFS_RETURN_IF_ERROR(NoteFormerSegments(*kv, changes));
    if (!changes.empty()) SILTFS_RETURN_IF_ERROR(kv->Write(changes));
  }

  SILTFS_RETURN_IF_ERROR(GoOn(options));
  SILTFS_ASSIGN_OR_RETURN(parts.index, OpenStoreIndex(env, options, parts.superblock, report));
  parts.guide = OpenGuide(disk, options, records);
  bool replay_later = ChunksAfter(records.segments, parts.index->durable_sequence()) >
                      options.most_replayed_at_open;
  if (replay_later) {
    SILTFS_ASSIGN_OR_RETURN(
        replay_later, CanReplayLater(options, identity, *segments, parts.guide.get(), report));
  }
  std::vector<IndexEntry> unindexed;
  if (!replay_later) {
    SILTFS_ASSIGN_OR_RETURN(unindexed, Replay(*segments, options, identity, records, *kv,
                                              *parts.index, parts.guide.get(), report));
  }

  SILTFS_ASSIGN_OR_RETURN(parts.metadata,
                          OpenMetadata(disk, options, parts.superblock, std::move(kv)));
  if (!read_only) {
    MetadataStore* metadata = parts.metadata.get();
    parts.ids = std::make_unique<IdAllocator>(
        records.ids,
        [metadata](const std::vector<Mutation>& m) { return metadata->WriteThrough(m); });
    SILTFS_RETURN_IF_ERROR(parts.ids->BeginMount());
    parts.superblock.ro_compat_features |= kUsualRoCompatFeatures;
    parts.superblock.clean = false;
    parts.superblock.last_commit = records.last_commit;
    SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, options.store, parts.superblock));
  }
  SILTFS_ASSIGN_OR_RETURN(
      parts.chunk_parts,
      ChunkParts::Open(env, *parts.index, StoreOptions(options, records, parts, segments),
                       records.segments, std::move(unindexed)));
  parts.chunks = std::make_unique<ChunkStore>(*parts.chunk_parts);
  if (!read_only) {
    parts.near_duplicates = OpenChoiceOfBases(disk, options, parts);
    MaintenanceJobs::Options jobs = JobOptions(options, records, *parts.reserve);
    if (jobs.chooser == nullptr) jobs.chooser = parts.near_duplicates.get();
    parts.jobs = std::make_unique<MaintenanceJobs>(*parts.chunk_parts, *parts.chunks,
                                                   records.segments, std::move(jobs));
    const std::function<Status()> compare = CompareCopies(*parts.chunk_parts, records);
    if (replay_later) {
      IndexReplay::Options replay;
      replay.identity = identity;
      replay.secondary = records.secondary;
      replay.finish = compare;
      replay.mark_unfinished = [&env, store = options.store] { return MarkRebuild(env, store); };
      replay.on_progress = options.on_index_progress;
      parts.replay =
          std::make_unique<IndexReplay>(*parts.chunk_parts, records.segments, std::move(replay));
    } else {
      SILTFS_RETURN_IF_ERROR(compare());
    }
    // If this process is killed from now on, the next mount puts the entries that the index lacks.
    // So the mark of an unfinished rebuild is removed.
    SILTFS_RETURN_IF_ERROR(FinishRebuild(env, options.store));
    // Set the participant before the first operation, which FileSystemImpl::Start may make, but
    // after the steps that may fail. If such a step fails, no commit calls the chunk store, so the
    // store can be destroyed at once.
    parts.metadata->SetParticipant(parts.chunks.get());
  }
  return parts;
}

namespace {

Result<std::unique_ptr<FileSystem>> OpenLive(Env& disk, FileSystemOptions options) {
  if (!options.snapshot.empty() && !options.read_only)
    return Status(StatusCode::kInvalidArgument, "a snapshot can only be opened for reading");
  SILTFS_ASSIGN_OR_RETURN(FileSystemImpl::Parts parts,
                          OpenStoreParts(disk, options, StoreContent::kFiles));
  Env& env = parts.env ? *parts.env : disk;
  const SnapshotDirectoryMode directory = options.snapshot_directory;
  const std::string snapshot = options.snapshot;
  auto live = std::make_unique<FileSystemImpl>(env, std::move(options), std::move(parts));
  SILTFS_RETURN_IF_ERROR(live->Start());
  SnapshotTrees& trees = live->snapshot_trees();
  OperationGate& gate = live->gate();
  RolledBackInodes& rolled_back = live->rolled_back();
  uint64_t root = 0;
  SnapshotTrees::View view = SnapshotTrees::kDirectory;
  if (!snapshot.empty()) {
    const auto found = live->snapshots().Find(snapshot);
    // A missing snapshot is no missing store.
    if (!found.ok()) return Status(StatusCode::kAborted, std::string(found.status().cause()));
    root = found->number;
    SILTFS_ASSIGN_OR_RETURN(view, trees.AddView(root));
  }
  return std::unique_ptr<FileSystem>(std::make_unique<RoutedFileSystem>(
      std::move(live), gate, rolled_back, trees, directory, root, view));
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Open(Env& disk, FileSystemOptions options) {
  auto opened = OpenLive(disk, options);
  const Status& status = opened.status();
  if (status.Is(StatusCode::kNoSpace) && !options.read_only && options.keep_reserve)
    FillReserveAgain(disk, options);
  // These errors mean damage: there is a file where the store should have a directory, or a
  // directory where it should have a file.
  if (!status.Is(StatusCode::kNotADirectory) && !status.Is(StatusCode::kIsADirectory))
    return opened;
  return Status(StatusCode::kCorruption, std::string(status.cause())).At(status.path());
}

}  // namespace siltfs
