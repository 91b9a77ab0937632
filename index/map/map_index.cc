#include "index/map/map_index.h"

#include "index/map/map_snapshot.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

class MapIndex final : public ChunkIndex {
 public:
  MapIndex(Env& env, const MapIndexOptions& options, MapSnapshot snapshot, uint64_t flash_bytes)
      : ChunkIndex(options.read_only),
        env_(env),
        path_(MapSnapshotPath(options.directory)),
        entries_(std::move(snapshot.entries)),
        durable_(snapshot.sequence),
        flash_bytes_(flash_bytes) {}

 private:
  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override {
    ReaderLock lock(mutex_);
    for (size_t i = 0; i < names.size(); ++i) {
      if (auto found = entries_.find(names[i]); found != entries_.end()) results[i] = found->second;
    }
    return Status::Ok();
  }

  Status PutImpl(std::span<const IndexEntry> entries, uint64_t /*complete*/) override {
    WriterLock lock(mutex_);
    for (const IndexEntry& entry : entries) entries_[entry.name] = entry.location;
    changed_ = true;
    return Status::Ok();
  }

  Status DeleteImpl(const ChunkName& name) override {
    WriterLock lock(mutex_);
    if (entries_.erase(name) != 0) changed_ = true;
    return Status::Ok();
  }

  Status FlushImpl(uint64_t complete) override {
    std::string snapshot;
    {
      ReaderLock lock(mutex_);
      if (!changed_ && complete == durable_) return Status::Ok();
      snapshot = EncodeMapSnapshot(entries_, complete);
    }
    SILTFS_RETURN_IF_ERROR(ReplaceFile(env_, path_, AsBytes(snapshot)));
    WriterLock lock(mutex_);
    changed_ = false;  // nothing is put or deleted during a Flush
    durable_ = complete;
    flash_bytes_ = snapshot.size();
    flash_bytes_written_ += snapshot.size();
    return Status::Ok();
  }

  uint64_t DurableSequenceImpl() const override {
    ReaderLock lock(mutex_);
    return durable_;
  }

  Status ForEachImpl(const Visit& visit) override {
    ChunkMap entries;
    {
      ReaderLock lock(mutex_);
      entries = entries_;
    }
    for (const auto& [name, location] : entries) {
      // Prefixes sort like the names.
      SILTFS_RETURN_IF_ERROR(visit({OrderOfImpl(name), location}));
    }
    return Status::Ok();
  }

  uint64_t OrderOfImpl(const ChunkName& name) const override { return name.Prefix64(); }

  void SetGoneImpl(std::function<bool(SegmentId)> gone) override {
    WriterLock lock(mutex_);
    gone_ = std::move(gone);
  }
  Result<bool> DropGoneImpl(size_t, uint64_t) override {
    WriterLock lock(mutex_);
    if (!gone_) return false;
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const bool is_gone = gone_(entry->second.segment);
      entry = is_gone ? entries_.erase(entry) : std::next(entry);
      changed_ |= is_gone;
    }
    return false;
  }

  // The snapshot's checksum is verified when it is read; the map in memory needs no check.
  Status VerifyImpl(const std::function<void(const IndexFinding&)>&) override {
    return Status::Ok();
  }

  IndexStats StatsImpl() const override {
    ReaderLock lock(mutex_);
    constexpr uint64_t kNodeBytes = sizeof(ChunkMap::value_type) + 4 * sizeof(void*);
    IndexComponentStats map{.kind = "map",
                            .entries = entries_.size(),
                            .flash_bytes = flash_bytes_,
                            .memory_bytes = entries_.size() * kNodeBytes,
                            .flash_bytes_written = flash_bytes_written_};
    IndexStats stats;
    stats.engine = kMapIndexEngine.name;
    stats.entries = map.entries;
    stats.memory_bytes = map.memory_bytes;
    stats.flash_bytes = map.flash_bytes;
    stats.flash_bytes_written = map.flash_bytes_written;
    stats.stores.push_back(std::move(map));
    return stats;
  }

  Status CloseImpl(uint64_t complete) override { return FlushImpl(complete); }

  Env& env_;
  const std::string path_;

  mutable SharedMutex mutex_;
  ChunkMap entries_ SILTFS_GUARDED_BY(mutex_);
  bool changed_ SILTFS_GUARDED_BY(mutex_) = false;
  uint64_t durable_ SILTFS_GUARDED_BY(mutex_);
  uint64_t flash_bytes_ SILTFS_GUARDED_BY(mutex_);
  uint64_t flash_bytes_written_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::function<bool(SegmentId)> gone_ SILTFS_GUARDED_BY(mutex_);  // may be empty
};

}  // namespace

Result<std::unique_ptr<ChunkIndex>> OpenMapIndex(Env& env, const MapIndexOptions& options) {
  // Fails if the directory is missing; an empty directory is an empty index.
  SILTFS_RETURN_IF_ERROR(env.ListDirectory(options.directory).status());
  const std::string path = MapSnapshotPath(options.directory);
  SILTFS_ASSIGN_OR_RETURN(MapSnapshot snapshot, ReadMapSnapshot(env, path));
  uint64_t flash_bytes = 0;
  if (auto info = env.GetFileInfo(path); info.ok()) {
    flash_bytes = info->size;
  } else if (!info.status().Is(StatusCode::kNotFound)) {
    return std::move(info).status();
  }
  // An earlier process may have been killed after it renamed the snapshot, and before it synced the
  // directory. The sync here makes sure that the snapshot is durable.
  if (!options.read_only) SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.directory));
  return std::unique_ptr<ChunkIndex>(
      std::make_unique<MapIndex>(env, options, std::move(snapshot), flash_bytes));
}

}  // namespace siltfs
