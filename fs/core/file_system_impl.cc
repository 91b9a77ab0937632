// Starting and closing the FileSystem.
#include "fs/core/file_system_impl.h"

#include "fs/core/close_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {
FileSystemImpl::FileSystemImpl(Env& env, FileSystemOptions options, Parts parts)
    : reserve_(std::move(parts.reserve)),
      reserve_env_(std::move(parts.env)),
      metadata_env_(std::move(parts.metadata_env)),
      env_(env),
      options_(std::move(options)),
      lock_(std::move(parts.lock)),
      superblock_(parts.superblock),
      index_(std::move(parts.index)),
      guide_(std::move(parts.guide)),
      metadata_(std::move(parts.metadata)),
      ids_(std::move(parts.ids)),
      chunk_parts_(std::move(parts.chunk_parts)),
      chunks_(std::move(parts.chunks)),
      near_duplicates_(std::move(parts.near_duplicates)),
      jobs_(std::move(parts.jobs)),
      replay_(std::move(parts.replay)),
      store_(env_, options_, *chunks_, *metadata_, reserve_.get()),
      content_(*chunks_, std::move(parts.chunker_tables)),
      changes_(store_),
      inodes_(store_, changes_, overlay_memory_),
      lifetimes_(store_, inodes_, changes_),
      acls_(store_, changes_),
      xattrs_(store_, inodes_, changes_, acls_),
      folds_(store_, content_, inodes_, changes_),
      attributes_(store_, content_, inodes_, changes_, acls_, xattrs_, folds_),
      fold_thread_(store_, gate_, inodes_, changes_, folds_, overlay_memory_),
      names_(store_, inodes_),
      namespace_(store_, ids_.get(), inodes_, lifetimes_, changes_, acls_, names_),
      renames_(store_, inodes_, lifetimes_, changes_, names_),
      files_(store_, content_, inodes_, lifetimes_, attributes_, folds_),
      writes_(store_, content_, inodes_, changes_, xattrs_, folds_, fold_thread_, overlay_memory_),
      clones_(store_, ids_.get(), inodes_, changes_, names_),
      quotas_(store_, ids_.get(), gate_, inodes_, changes_, names_,
              [this] { return EnableQuotas(); }),
      snapshot_trees_(store_, content_),
      snapshots_(store_, ids_.get(), gate_, rolled_back_, inodes_, lifetimes_, snapshot_trees_,
                 *this),
      transfers_(store_, snapshot_trees_, snapshots_, superblock_.uuid),
      entries_(store_, content_, ids_.get(), inodes_, lifetimes_, changes_, names_, folds_,
               clones_),
      contents_(store_, inodes_),
      usage_(store_, gate_),
      maintenance_(store_, std::move(parts.reserve_directory), *index_, guide_.get(),
                   near_duplicates_.get(), *chunk_parts_, jobs_.get(), content_, changes_,
                   lifetimes_) {}

FileSystemImpl::~FileSystemImpl() {
  if (replay_) replay_->Stop();  // the fold thread may wait for it
  fold_thread_.Stop();
  snapshots_.Stop();
  usage_.Stop();
  maintenance_.Stop();      // the threads of its jobs write metadata
  metadata_->EndCommits();  // commits call changes_ and chunks_
}

Status FileSystemImpl::Start() {
  SILTFS_RETURN_IF_ERROR(snapshots_.CompleteRollback());
  SILTFS_RETURN_IF_ERROR(LoadHidden(store_, inodes_.hidden()));
  SILTFS_RETURN_IF_ERROR(store_.quotas().Load(*metadata_));
  if (options_.read_only) return Status::Ok();
  changes_.StartDeferring();
  reserve_->Fill().IgnoreError("writes report a full disk");
  reserve_->Enter(SpaceReserve::Phase::kInUse);
  SILTFS_RETURN_IF_ERROR(lifetimes_.RemoveOrphans());
  SILTFS_RETURN_IF_ERROR(RemoveHidden(store_, inodes_.hidden()));
  fold_thread_.Start();
  snapshots_.Start();
  if (replay_) {
    replay_->Start([this] { maintenance_.StartInBackground(); });
  } else {
    maintenance_.StartInBackground();
  }
  return Status::Ok();
}

Result<QuotaNumber> FileSystemImpl::QuotaOf(InodeNumber inode) {
  QuotaNumber quota = kNoQuota;
  SILTFS_RETURN_IF_ERROR(inodes_.WithLoaded(inode, false, [&quota](const Inode& loaded) {
    quota = loaded.record.quota;
    return Status::Ok();
  }));
  return quota;
}

Result<SpaceInfo> FileSystemImpl::GetSpaceOf(InodeNumber inode) {
  if (!store_.quotas().any()) return store_.GetContentSpace();
  const auto quota = QuotaOf(inode);
  return quota.ok() ? store_.GetContentSpace(*quota) : store_.GetContentSpace();
}

bool FileSystemImpl::NearlyFullFor(InodeNumber inode) {
  if (store_.NearlyFull()) return true;
  if (!store_.quotas().any()) return false;
  const auto quota = QuotaOf(inode);
  return quota.ok() && store_.quotas().NearlyUsed(*quota);
}

Status FileSystemImpl::EnableQuotas() {
  if ((superblock_.incompat_features & kIncompatQuotas) != 0) return Status::Ok();
  Superblock changed = superblock_;
  changed.incompat_features |= kIncompatQuotas;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env_, options_.store, changed));
  superblock_ = changed;
  return Status::Ok();
}

void FileSystemImpl::FoldAll() {
  for (const InodePtr& inode : inodes_.Snapshot()) {
    bool fold;
    {
      InodeLock lock(inode, InodeLock::Mode::kExclusive);
      fold = folds_.NeedsFold(*inode);
    }
    if (fold) folds_.FoldAndLog(inode->number);
  }
}

Status FileSystemImpl::Close() {
  if (replay_) replay_->Stop();  // the fold thread may wait for it
  fold_thread_.Stop();
  snapshots_.Stop();
  usage_.Stop();
  maintenance_.Stop();
  if (options_.read_only) return metadata_->Close();
  // After a failed rollback, the next mount completes it. Folds would use a mixture of two states.
  if (!gate_.broken()) FoldAll();
  return CloseStore({.env = env_,
                     .store = options_.store,
                     .reserve = *reserve_,
                     .superblock = superblock_,
                     .index = *index_,
                     .guide = guide_.get(),
                     .metadata = *metadata_,
                     .ids = *ids_,
                     .chunks = *chunks_,
                     .near_duplicates = near_duplicates_.get(),
                     .maintenance = &maintenance_,
                     .jobs = *jobs_,
                     .replay = replay_.get()});
}

}  // namespace siltfs
