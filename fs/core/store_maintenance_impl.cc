#include "fs/core/store_maintenance_impl.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "chunker/sha1/kernels.h"
#include "fs/core/damaged_files.h"
#include "fs/interface/snapshots.h"
#include "fs/records/last_scrub_record.h"
#include "fs/records/schema.h"
#include "fs/versions/snapshot_paths.h"

namespace siltfs {
namespace {

// A scrub reports at most this many damaged files by name.
constexpr size_t kMostNamed = 1000;

// Returns an empty value for a record that cannot be read, because a store that is damaged or has
// failed must still have statistics.
std::optional<LastScrub> ReadLastScrub(const KvSnapshot& metadata) {
  const auto value = metadata.Get(kLastScrubKey);
  if (!value.ok()) value.status().IgnoreError("fsck reports unreadable metadata");
  if (!value.ok() || !*value) return std::nullopt;
  const auto record = LastScrubRecord::Decode(**value);
  if (!record.ok()) {
    record.status().IgnoreError("fsck reports a malformed record");
    return std::nullopt;
  }
  return LastScrub{.ended_ns = record->ended_ns,
                   .damaged_blocks = record->damaged_blocks,
                   .damaged_chunks = record->damaged_chunks,
                   .damaged_footers = record->damaged_footers};
}

}  // namespace

void StoreMaintenanceImpl::StartInBackground() {
  if (jobs_->guide_updater() != nullptr) jobs_->guide_updater()->StartInBackground();
  if (store_.options().recompress_in_background) jobs_->recompressor().StartInBackground();
  if (store_.options().collect_in_background) jobs_->collector().StartInBackground();
  if (store_.options().record_sizes_daily) sizes_.StartInBackground();
}

void StoreMaintenanceImpl::StopRecompression() {
  if (jobs_ != nullptr) jobs_->recompressor().Stop();
}

void StoreMaintenanceImpl::StopCollecting() {
  if (jobs_ != nullptr) jobs_->collector().Stop();
}

void StoreMaintenanceImpl::InterruptRecompression() {
  ++recompression_interruptions_;
  store_.chunks().WakeWaitsForIndex();
  if (jobs_ != nullptr) jobs_->recompressor().Interrupt();
}

void StoreMaintenanceImpl::InterruptCollecting() {
  ++collecting_interruptions_;
  store_.chunks().WakeWaitsForIndex();
  if (jobs_ != nullptr) jobs_->collector().Interrupt();
}

void StoreMaintenanceImpl::InterruptScrub() {
  if (jobs_ != nullptr) jobs_->scrubber().Interrupt();
}

void StoreMaintenanceImpl::StopScrubbing() {
  if (jobs_ != nullptr) jobs_->scrubber().Stop();
}

void StoreMaintenanceImpl::Stop() {
  surveyor_.Stop();
  sizes_.Stop();
  if (jobs_ != nullptr) jobs_->Stop();
}

Result<FileSystemStats> StoreMaintenanceImpl::GetStats() {
  changes_.SaveAllDeferred(UINT64_MAX).IgnoreError("a failed store still has statistics");
  const Counters counters = store_.metadata().counters();
  auto counter = [&counters](Counter c) {
    return static_cast<uint64_t>(counters[static_cast<size_t>(c)]);
  };
  const ChunkStoreTotals totals = store_.chunks().totals();
  FileSystemStats stats;
  stats.logical_bytes = counter(Counter::kLogicalBytes);
  stats.files = counter(Counter::kFiles);
  stats.directories = counter(Counter::kDirectories);
  stats.chunks_logical = counter(Counter::kChunkReferences);
  stats.unique_bytes = totals.plain_bytes;
  stats.chunks_unique = totals.chunks;
  stats.stored_bytes = totals.stored_bytes;
  stats.dead_bytes = totals.dead_bytes;
  stats.awaiting_recompression_bytes = totals.awaiting_recompression_bytes;
  stats.added_bytes = totals.added_bytes;
  stats.sha1_collisions = totals.sha1_collisions;
  stats.damaged_blocks = totals.damaged_blocks;
  stats.damaged_chunks = totals.damaged_chunks;
  stats.metadata_bytes = store_.metadata().DiskBytes();
  stats.index = index_.stats();
  stats.index_bytes = stats.index.flash_bytes;
  if (guide_ != nullptr && guide_->usable()) {
    const SegmentGuideStats guide = guide_->stats();
    stats.guide = guide.filters;
    stats.guide_lookups = guide.lookups;
    stats.guide_uncovered = guide.uncovered;
    stats.index_bytes += guide.filters.flash_bytes;
  }
  stats.deltas = GetDeltaStats();
  if (stats.deltas && stats.deltas->lsh) stats.index_bytes += stats.deltas->lsh->flash_bytes;
  stats.segments_searched = store_.chunks().read_stats().segments_searched;
  const ReplayState::Progress replay = store_.chunks().replay_progress();
  stats.index_replay = {replay.running, replay.done, replay.total};
  SILTFS_ASSIGN_OR_RETURN(stats.reserve_bytes,
                          SpaceReserve::BytesIn(store_.env(), reserve_directory_));
  stats.last_commit = store_.metadata().last_commit();
  stats.label = parts_.options.superblock.label;
  stats.uuid = parts_.options.superblock.shown_uuid().ToText();
  stats.created_ns = parts_.options.superblock.created_ns;
  stats.last_scrub = ReadLastScrub(*store_.metadata().CommittedSnapshot());
  const auto space = store_.GetSpace();
  if (space.ok()) {
    stats.disk_bytes = space->total_bytes;
    stats.disk_available_bytes = space->available_bytes;
  } else {
    space.status().IgnoreError("the other statistics are useful without the disk's");
  }
  stats.chunker_kernel = content_.kernel().name;
  SILTFS_ASSIGN_OR_RETURN(const Sha1Kernel* sha1_kernel, Sha1KernelInUse());
  stats.sha1_kernel = sha1_kernel->name;
  const Status failure = Failure();
  stats.read_only = store_.options().read_only || !failure.ok();
  if (!failure.ok()) stats.read_only_cause = failure.ToString();
  return stats;
}

StoreHealth StoreMaintenanceImpl::GetHealth() {
  StoreHealth health;
  health.found_damaged_blocks = store_.chunks().totals().found_damaged_blocks;
  health.last_scrub = ReadLastScrub(*store_.metadata().CommittedSnapshot());
  const Status failure = Failure();
  if (!failure.ok()) health.read_only_cause = failure.ToString();
  return health;
}

Status StoreMaintenanceImpl::Failure() const {
  const Status failure = store_.metadata().failure();
  // Metadata learns of a failure of the chunk store with the next commit.
  return failure.ok() ? store_.chunks().failure() : failure;
}

StoreActivityReport StoreMaintenanceImpl::GetActivity() {
  const TrafficCounters& traffic = parts_.traffic;
  StoreActivityReport report;
  report.monotonic_ns = store_.env().MonotonicNanoseconds();
  report.read_bytes = traffic.read_bytes.value();
  report.reads = traffic.reads.value();
  report.written_bytes = traffic.written_bytes.value();
  report.writes = traffic.writes.value();
  report.put_bytes = traffic.put_bytes.value();
  report.put_chunks = traffic.put_chunks.value();
  report.put_chunks_found_in_memory = traffic.put_chunks_found_in_memory.value();
  const ChunkStore::ReadStats read = store_.chunks().read_stats();
  report.block_hits = read.block_hits;
  report.blocks_decoded = read.blocks_decoded;
  const IndexStats index = index_.stats();
  report.index = {.lookups = index.lookups,
                  .flash_reads = index.flash_reads,
                  .flash_bytes_written = index.flash_bytes_written,
                  .conversions = index.conversions,
                  .merges = index.merges,
                  .merge_backlog = index.merge_backlog};
  const SpaceAccount::Totals changes = parts_.account.totals();
  report.recompression.bytes = changes.recompressed_bytes;
  report.gc.bytes = changes.removed_bytes;
  if (jobs_ != nullptr) {
    report.recompression.running = jobs_->recompressor().running();
    report.gc.running = jobs_->collector().running();
    report.recompression.progress = jobs_->recompressor().progress();
    report.gc.progress = jobs_->collector().progress();
    report.scrub = {jobs_->scrubber().running(), jobs_->scrubber().verified_bytes(),
                    jobs_->scrubber().progress()};
  }
  const ChunkStoreTotals totals = store_.chunks().totals();
  report.added_bytes = totals.added_bytes;
  report.stored_bytes = totals.stored_bytes;
  report.dead_bytes = totals.dead_bytes;
  report.awaiting_recompression_bytes = totals.awaiting_recompression_bytes;
  report.damaged_blocks = totals.damaged_blocks;
  const auto space = store_.GetSpace();
  if (space.ok()) {
    report.disk_available_bytes = space->available_bytes;
  } else {
    space.status().IgnoreError("the other counters are useful without the disk's");
  }
  report.read_only = !Failure().ok();
  return report;
}

std::optional<DeltaStats> StoreMaintenanceImpl::GetDeltaStats() const {
  if (!parts_.options.superblock.deltas()) return std::nullopt;
  DeltaStats stats;
  stats.segments = parts_.bases.size();
  if (jobs_ != nullptr) {
    stats.deltas = jobs_->recompressor().deltas();
    stats.saved_bytes = jobs_->recompressor().delta_saved_bytes();
  }
  if (near_duplicates_ == nullptr) return stats;
  const NearDuplicateStats chosen = near_duplicates_->stats();
  stats.examined = chosen.examined;
  stats.candidates = chosen.candidates;
  stats.offered = chosen.offered;
  stats.memory_bytes = chosen.memory_bytes;
  stats.lsh = chosen.lsh;
  return stats;
}

void StoreMaintenanceImpl::UpdateGuide() {
  if (jobs_->guide_updater() == nullptr) return;
  jobs_->guide_updater()->Update().IgnoreError("the guide is brought up to date later");
}

Result<RecompressionReport> StoreMaintenanceImpl::Recompress() {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.chunks().WaitUntilIndexed(recompression_interruptions_));
  // Segments can be recompressed only after metadata knows that they are sealed. This takes a
  // commit, even if nothing else changed.
  SILTFS_RETURN_IF_ERROR(CommitSealed());
  UpdateGuide();
  SILTFS_ASSIGN_OR_RETURN(const RecompressionOutcome outcome, jobs_->recompressor().Recompress());
  return RecompressionReport{
      .segments_rewritten = outcome.segments,
      .segments_kept = outcome.kept,
      .segments_left = outcome.left,
      .bytes_before = outcome.bytes_before,
      .bytes_after = outcome.bytes_after,
      .awaiting_recompression_bytes = store_.chunks().totals().awaiting_recompression_bytes,
      .delta_chunks = outcome.deltas,
      .delta_saved_bytes = outcome.delta_saved_bytes};
}

Result<GarbageReport> StoreMaintenanceImpl::CollectGarbage(bool dry_run) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  SILTFS_RETURN_IF_ERROR(store_.chunks().WaitUntilIndexed(collecting_interruptions_));
  lifetimes_.AwaitRemovals(store_.options().deletion_patience);
  store_.chunks().WaitUntilSealed();
  SILTFS_ASSIGN_OR_RETURN(const GarbageOutcome outcome,
                          dry_run ? jobs_->collector().Estimate() : jobs_->collector().Collect());
  UpdateGuide();
  store_.reserve()->Fill().IgnoreError("there was too little garbage to fill it");
  return GarbageReport{.dry_run = dry_run,
                       .segments_checked = outcome.segments,
                       .segments_removed = outcome.segments_removed,
                       .segments_left = outcome.segments_left,
                       .bytes_removed = outcome.bytes_removed,
                       .bytes_copied = outcome.bytes_copied,
                       .bytes_freed = outcome.bytes_removed > outcome.bytes_copied
                                          ? outcome.bytes_removed - outcome.bytes_copied
                                          : 0,
                       .dead_bytes = outcome.dead_bytes,
                       .live_chunks = outcome.live_chunks,
                       .dead_chunks = outcome.dead_chunks};
}

Status StoreMaintenanceImpl::CommitSealed() {
  store_.chunks().WaitUntilSealed();
  return store_.metadata().CommitNow();
}

Result<ScrubReport> StoreMaintenanceImpl::Scrub(ScrubMode mode) {
  SILTFS_RETURN_IF_ERROR(store_.CheckWritable());
  const int64_t begun = store_.env().MonotonicNanoseconds();
  const Scrubber::Call call(jobs_->scrubber());
  // The scrub verifies the segments that metadata knows. After this commit metadata knows all
  // chunks that were put before the call.
  SILTFS_RETURN_IF_ERROR(CommitSealed());
  const ScrubPace pace = mode == ScrubMode::kGentle ? ScrubPace::kGentle : ScrubPace::kFull;
  SILTFS_ASSIGN_OR_RETURN(const ScrubOutcome outcome, jobs_->scrubber().Scrub(pace));
  ScrubReport report;
  report.resumed = outcome.resumed;
  report.complete = outcome.complete;
  report.segments = outcome.statistics.segments;
  report.blocks = outcome.statistics.blocks;
  report.chunks = outcome.statistics.chunks;
  report.bytes = outcome.statistics.bytes;
  report.damaged_blocks = outcome.statistics.damaged_blocks;
  report.damaged_chunks = outcome.statistics.damaged_chunks;
  report.damaged_footers = outcome.statistics.damaged_footers;
  if (outcome.complete) {
    const Status named = NameDamagedFiles(report);
    if (!named.ok() && !named.Is(StatusCode::kInterrupted)) return named;
  }
  report.seconds = static_cast<double>(store_.env().MonotonicNanoseconds() - begun) / 1e9;
  return report;
}

Status StoreMaintenanceImpl::NameDamagedFiles(ScrubReport& report) {
  const std::vector<DamagedBlock> damage = parts_.damage.All();
  if (damage.empty()) return Status::Ok();
  const ChunkStore::Use use(store_.chunks());
  const auto metadata = store_.metadata().CommittedSnapshot();
  SILTFS_ASSIGN_OR_RETURN(const DamagedFiles found,
                          FindDamagedFiles(*metadata, store_.chunks(), damage, kMostNamed,
                                           [this] { return jobs_->scrubber().CheckRunning(); }));
  report.damaged_files = found.count;
  if (!store_.options().report) return Status::Ok();
  std::set<FileVersion> files;
  for (const DamagedFile& damaged : found.files) files.insert(damaged.file);
  SILTFS_ASSIGN_OR_RETURN(const auto names,
                          NameFiles(*metadata, files, "/" + std::string(kSnapshotDirectoryName)));
  for (const DamagedFile& damaged : found.files) {
    const FileName& name = names.at(damaged.file);
    store_.options().report(fmt::format(
        "{} (inode {}{}{}): {} bytes cannot be read, the first at offset {}",
        name.path.empty() ? "a file without a name" : name.path, damaged.file.inode,
        name.snapshots.empty() ? "" : " as of ", name.snapshots, damaged.bytes, damaged.offset));
  }
  if (found.count > found.files.size()) {
    store_.options().report(
        fmt::format("{} more files have damage in them", found.count - found.files.size()));
  }
  return Status::Ok();
}

}  // namespace siltfs
