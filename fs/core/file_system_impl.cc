// Opening, statistics and closing of the FileSystem.
#include "fs/core/file_system_impl.h"

#include "chunker/sha1/kernels.h"
#include "fs/core/store_layout.h"
#include "fs/meta/schema.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr size_t kCachedInodes = 4096;
// A closed store's reserve is at most 1/kReserveShareAtRest of its stored bytes.
constexpr uint64_t kReserveShareAtRest = 128;

}  // namespace

FileSystemImpl::FileSystemImpl(Env& env, FileSystemOptions options, Parts parts)
    : reserve_(std::move(parts.reserve)),
      reserve_env_(std::move(parts.env)),
      metadata_env_(std::move(parts.metadata_env)),
      env_(env),
      options_(std::move(options)),
      lock_(std::move(parts.lock)),
      superblock_(parts.superblock),
      index_(std::move(parts.index)),
      chunks_(std::move(parts.chunks)),
      metadata_(std::move(parts.metadata)),
      ids_(std::move(parts.ids)),
      content_(*chunks_, std::move(parts.chunker_tables)),
      inodes_(kCachedInodes) {}

FileSystemImpl::~FileSystemImpl() {
  StopMaintenance();
  chunks_->StopScrubbing();  // these three write metadata
  chunks_->StopRecompression();
  chunks_->StopCollecting();
  metadata_->EndCommits();  // commits call this object and chunks_
  metadata_.reset();
}

Status FileSystemImpl::Start() {
  if (options_.read_only) return Status::Ok();
  metadata_->SetDeferredChanges(this);
  reserve_->Fill().IgnoreError("writes report a full disk");
  reserve_->Enter(SpaceReserve::Phase::kInUse);
  SILTFS_RETURN_IF_ERROR(RemoveOrphans());
  maintenance_thread_ = std::thread([this] { RunMaintenance(); });
  if (options_.recompress_in_background) chunks_->StartRecompression();
  if (options_.collect_in_background) chunks_->StartCollecting();
  return Status::Ok();
}

Result<SpaceInfo> FileSystemImpl::GetSpace() {
  SILTFS_ASSIGN_OR_RETURN(DiskSpace disk, env_.GetDiskSpace(options_.store));
  const Counters counters = metadata_->counters();
  SpaceInfo space;
  space.total_bytes = disk.total_bytes;
  space.free_bytes = disk.free_bytes;
  space.available_bytes = reserve_ ? reserve_->Usable(disk.available_bytes) : disk.available_bytes;
  space.inodes = static_cast<uint64_t>(counters[static_cast<size_t>(Counter::kFiles)] +
                                       counters[static_cast<size_t>(Counter::kDirectories)]);
  return space;
}

Result<FileSystemStats> FileSystemImpl::GetStats() {
  SaveAllDeferred(UINT64_MAX).IgnoreError("a failed store still has statistics");
  const Counters counters = metadata_->counters();
  auto counter = [&counters](Counter c) {
    return static_cast<uint64_t>(counters[static_cast<size_t>(c)]);
  };
  const ChunkStoreTotals totals = chunks_->totals();
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
  stats.sha1_collisions = totals.sha1_collisions;
  stats.damaged_blocks = totals.damaged_blocks;
  stats.damaged_chunks = totals.damaged_chunks;
  stats.metadata_bytes = metadata_->DiskBytes();
  stats.index = index_->stats();
  stats.index_bytes = stats.index.flash_bytes;
  SILTFS_ASSIGN_OR_RETURN(stats.reserve_bytes,
                          SpaceReserve::BytesIn(env_, ReservePath(options_.store)));
  stats.last_commit = metadata_->last_commit();
  stats.chunker_kernel = content_.kernel().name;
  SILTFS_ASSIGN_OR_RETURN(const Sha1Kernel* sha1_kernel, Sha1KernelInUse());
  stats.sha1_kernel = sha1_kernel->name;
  Status failure = metadata_->failure();
  if (failure.ok()) failure = chunks_->failure();  // metadata learns of it with the next commit
  stats.read_only = options_.read_only || !failure.ok();
  if (!failure.ok()) stats.read_only_cause = failure.ToString();
  return stats;
}

Result<RecompressionReport> FileSystemImpl::Recompress() {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  // Segments can be recompressed only after metadata knows that they are sealed. This takes a
  // commit, even if nothing else changed.
  chunks_->WaitUntilSealed();
  SILTFS_RETURN_IF_ERROR(metadata_->WaitForRoom());
  SILTFS_ASSIGN_OR_RETURN(const uint64_t commit, metadata_->Join());
  SILTFS_RETURN_IF_ERROR(metadata_->Commit(commit));
  SILTFS_ASSIGN_OR_RETURN(const RecompressionOutcome outcome, chunks_->Recompress());
  return RecompressionReport{
      .segments_rewritten = outcome.segments,
      .segments_kept = outcome.kept,
      .segments_left = outcome.left,
      .bytes_before = outcome.bytes_before,
      .bytes_after = outcome.bytes_after,
      .awaiting_recompression_bytes = chunks_->totals().awaiting_recompression_bytes};
}

Result<GarbageReport> FileSystemImpl::CollectGarbage(bool dry_run) {
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  chunks_->WaitUntilSealed();
  SILTFS_ASSIGN_OR_RETURN(const GarbageOutcome outcome,
                          dry_run ? chunks_->EstimateGarbage() : chunks_->CollectGarbage());
  reserve_->Fill().IgnoreError("there was too little garbage to fill it");
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

Status FileSystemImpl::Close() {
  StopMaintenance();
  chunks_->StopScrubbing();
  chunks_->StopRecompression();  // a collection may wait for recompression
  chunks_->StopCollecting();
  if (options_.read_only) return metadata_->Close();
  for (const InodePtr& inode : inodes_.Snapshot()) {
    bool fold;
    {
      InodeLock lock(inode, InodeLock::Mode::kExclusive);
      fold = NeedsFold(*inode);
    }
    if (fold) FoldAndLog(inode->number);
  }
  SILTFS_RETURN_IF_ERROR(metadata_->CommitAll());
  reserve_->Enter(SpaceReserve::Phase::kClosing);
  std::vector<Mutation> last;
  SILTFS_RETURN_IF_ERROR(chunks_->Finish(last));
  SILTFS_RETURN_IF_ERROR(index_->Close());
  if (!last.empty()) SILTFS_RETURN_IF_ERROR(metadata_->WriteThrough(last));
  SILTFS_RETURN_IF_ERROR(ids_->EndMount(chunks_->next_segment_id()));
  superblock_.last_commit = metadata_->last_commit();
  SILTFS_RETURN_IF_ERROR(metadata_->Close());
  superblock_.clean = true;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env_, options_.store, superblock_));
  reserve_->KeepOnly(chunks_->totals().stored_bytes / kReserveShareAtRest);
  return Status::Ok();
}

}  // namespace siltfs
