#include "fs/open/rebuild_index.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "fs/guide/guide_updater.h"
#include "fs/guide/segment_guide.h"
#include "fs/interface/file_system.h"
#include "fs/open/segment_check.h"
#include "fs/open/store_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_metadata.h"
#include "fs/open/store_records.h"
#include "fs/recovery/block_replay.h"
#include "fs/recovery/segment_replacement.h"
#include "fs/segments/damage_list.h"
#include "index/open_index.h"

namespace siltfs {
namespace {

// The state of the store that a rebuild needs.
struct Known {
  Superblock superblock;
  StoreIdentity identity;
  SegmentRecords segments;
  std::vector<DamagedBlock> damage;
  std::vector<SegmentId> secondary;
};

Result<Known> ReadStore(Env& env, const IndexRebuildOptions& options, SegmentStore& segments) {
  const std::string& store = options.store;
  SILTFS_ASSIGN_OR_RETURN(const SuperblockState state, ReadSuperblock(env, store));
  SILTFS_RETURN_IF_ERROR(CheckPlaceIsKnown(state.superblock, options.segments, store));
  SILTFS_ASSIGN_OR_RETURN(const auto kv, OpenExistingMetadata(env, state.superblock, store,
                                                              KvStoreOptions::Mode::kReadOnly));
  auto records = ReadStoreRecords(*kv);
  if (!records.ok()) return std::move(records).status().At(MetadataPath(store));
  SILTFS_RETURN_IF_ERROR(CheckCommit(state, records->last_commit, store));
  if (!state.superblock.clean || !records->ids.clean) {
    return Status(StatusCode::kInvalidArgument,
                  "the store was not unmounted: mount and unmount it first")
        .At(store);
  }
  Known known;
  known.superblock = state.superblock;
  known.identity = {store, state.superblock.uuid, records->last_commit, {}, records->floors};
  known.segments = std::move(records->segments);
  known.damage = std::move(records->damage);
  known.secondary = std::move(records->secondary);
  std::vector<Mutation> changes;  // the next mount writes them
  ResolveReplacements(segments, known.identity, records->replacements, known.segments, changes);
  SILTFS_RETURN_IF_ERROR(CheckSegments(segments, known.identity, records->ids, known.segments));
  return known;
}

Result<std::unique_ptr<ChunkIndex>> OpenEmptyIndex(Env& env, const Known& known) {
  const IndexOptions options = IndexOptionsOf(known.superblock, known.identity.store);
  SILTFS_RETURN_IF_ERROR(EmptyIndexDirectory(env, known.identity.store));
  return OpenIndex(env, options);
}

class Rebuild {
 public:
  Rebuild(Env& env, const IndexRebuildOptions& options, SegmentStore& segments, const Known& known)
      : env_(env), options_(options), segments_(segments), known_(known), damage_(known.damage) {}

  Result<RebuiltIndex> Run() {
    SILTFS_ASSIGN_OR_RETURN(const auto index, OpenEmptyIndex(env_, known_));
    ReplayedEntries replayed(*index, known_.segments, known_.secondary, damage_);
    ReplayOptions replay;
    replay.put = [&](std::span<const IndexEntry> entries, uint64_t sequence) {
      rebuilt_.chunks += entries.size();
      SILTFS_RETURN_IF_ERROR(Continue());
      return replayed.Put(entries, sequence);
    };
    replay.report = [this](const std::string& sentence) {
      ++rebuilt_.damages;
      if (options_.report) options_.report(sentence);
    };
    replay.segment_done = [this](SegmentId) {
      ++rebuilt_.segments;
      if (options_.on_progress) options_.on_progress(rebuilt_.segments, known_.segments.size());
      return Continue();
    };
    replay.on_damage = [this](const DamagedBlock& lost) {
      return damage_.Add(lost) ? WriteList() : Status::Ok();
    };
    SILTFS_RETURN_IF_ERROR(ReplayBlocks(segments_, known_.identity, known_.segments, replay));
    if (kv_) SILTFS_RETURN_IF_ERROR(kv_->CloseCleanly());
    SILTFS_RETURN_IF_ERROR(index->Close());
    SILTFS_RETURN_IF_ERROR(FinishRebuild(env_, known_.identity.store));
    SILTFS_RETURN_IF_ERROR(MakeGuide());
    const IndexStats stats = index->stats();
    rebuilt_.engine = stats.engine;
    rebuilt_.entries = stats.entries;
    return rebuilt_;
  }

 private:
  // The guide is made again, too. A store works without it, so only an interruption is an error.
  Status MakeGuide() {
    const std::string directory = GuidePath(known_.identity.store);
    SegmentGuide::Options guide_options{.directory = directory, .report = options_.report};
    Status made = MakeEmptyDirectory(env_, directory);
    if (made.ok()) {
      const auto guide = SegmentGuide::Open(env_, std::move(guide_options), known_.segments);
      made = CoverWaiting(*guide, segments_, known_.identity.uuid,
                          [this](uint64_t) { return Continue(); });
      // What was covered is kept, also after an interruption.
      guide->Close().IgnoreError("the next mount covers the segments again");
    }
    if (made.ok() || made.Is(StatusCode::kInterrupted)) return made;
    if (options_.report) {
      options_.report(fmt::format("the segment guide was not made: {}", made.ToString()));
    }
    return Status::Ok();
  }

  Status Continue() const {
    if (!options_.interrupted || !options_.interrupted()) return Status::Ok();
    return Status(StatusCode::kInterrupted,
                  "rebuilding the chunk index was interrupted; the next mount continues")
        .At(options_.store);
  }

  Status WriteList() {
    if (!kv_) {
      SILTFS_ASSIGN_OR_RETURN(kv_, OpenStoreMetadata(env_, known_.superblock, known_.identity.store,
                                                     KvStoreOptions::Mode::kOpen));
    }
    return WriteDamage(damage_, *kv_);
  }

  Env& env_;
  const IndexRebuildOptions& options_;
  SegmentStore& segments_;
  const Known& known_;
  DamageList damage_;
  std::unique_ptr<KvStore> kv_;  // once there is something to write
  RebuiltIndex rebuilt_;
};

Status Recover(Env& env, const IndexRebuildOptions& options) {
  FileSystemOptions open;
  open.store = options.store;
  open.segments = options.segments;
  open.report = options.report;
  SILTFS_ASSIGN_OR_RETURN(const auto file_system, FileSystem::Open(env, open));
  return file_system->Close();
}

Result<RebuiltIndex> RebuildWithLock(Env& env, const IndexRebuildOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const auto lock, env.LockFile(LockPath(options.store)));
  return RebuildLockedIndex(env, options);
}

}  // namespace

Result<RebuiltIndex> RebuildLockedIndex(Env& env, const IndexRebuildOptions& options) {
  const int64_t begin = env.MonotonicNanoseconds();
  const auto segments = OpenSegmentStore(env, options.store, options.segments);
  SILTFS_ASSIGN_OR_RETURN(const Known known, ReadStore(env, options, *segments));
  auto rebuilt = Rebuild(env, options, *segments, known).Run();
  if (rebuilt.ok()) rebuilt->nanoseconds = env.MonotonicNanoseconds() - begin;
  return rebuilt;
}

Result<RebuiltIndex> RebuildIndex(Env& env, const IndexRebuildOptions& options) {
  // The superblock is read before locking, because locking would make a lock file where there is no
  // store.
  SILTFS_RETURN_IF_ERROR(ReadSuperblock(env, options.store).status());
  auto rebuilt = RebuildWithLock(env, options);
  if (rebuilt.ok() || !rebuilt.status().Is(StatusCode::kInvalidArgument)) return rebuilt;
  SILTFS_RETURN_IF_ERROR(Recover(env, options));
  return RebuildWithLock(env, options);
}

}  // namespace siltfs
