#include "index/silt/silt_index.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "index/silt/log_files.h"
#include "index/silt/log_store.h"
#include "index/silt/recovery.h"
#include "index/silt/store_lookup.h"
#include "index/silt/store_manifest.h"
#include "index/silt/store_scan.h"

namespace siltfs {
namespace {

class SiltIndex final : public ChunkIndex {
 public:
  SiltIndex(Env& env, const SiltIndexOptions& options, RecoveredStores stores)
      : ChunkIndex(options.read_only),
        env_(env),
        options_(options),
        hash_secret_(stores.manifest.hash_secret),
        manifest_(std::move(stores.manifest)),
        complete_(stores.durable_sequence),
        active_(std::move(stores.active)),
        frozen_(std::make_shared<const StoreList>(std::move(stores.frozen))),
        durable_(stores.durable_sequence),
        flash_bytes_written_(stores.bytes_written),
        damaged_at_open_(stores.damaged_pages) {}

 private:
  // --- Lookups ---

  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override {
    std::vector<Lookup> lookups;
    lookups.reserve(names.size());
    for (const ChunkName& name : names) {
      lookups.emplace_back(name, LogStore::HashOf(name, hash_secret_));
    }
    uint64_t pages_read = 0;
    Status status = Find(lookups, &pages_read);
    flash_reads_.fetch_add(pages_read, std::memory_order_relaxed);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto& found = lookups[i].found();
      if (found && !IsTombstone(found->entry)) results[i] = found->entry.location;
    }
    return status;
  }

  Status Find(std::span<Lookup> lookups, uint64_t* pages_read) {
    std::shared_ptr<const LogStore> active;  // pins what the candidates refer to
    std::shared_ptr<const StoreList> frozen;
    {
      ReaderLock lock(mutex_);
      active = active_;
      frozen = frozen_;
      for (const Lookup& lookup : lookups) lookup.Prefetch(*active);
      for (Lookup& lookup : lookups) lookup.Probe(*active);
    }
    return Account(FinishLookups(lookups, *frozen, 0, frozen->size()), pages_read);
  }

  // What the active store holds of a name; nothing if it is not there.
  Result<std::optional<LogStore::Resident>> FindInActive(const ChunkName& name, uint64_t hash) {
    Lookup lookup(name, hash);
    {
      ReaderLock lock(mutex_);
      lookup.Probe(*active_);
    }
    if (lookup.waiting()) {
      uint64_t pages_read = 0;
      Status status = Account(FinishLookups({&lookup, 1}, {}, 0, 0), &pages_read);
      put_flash_reads_.fetch_add(pages_read, std::memory_order_relaxed);
      SILTFS_RETURN_IF_ERROR(std::move(status));
    }
    std::optional<LogStore::Resident> resident;
    if (lookup.found()) {
      resident = {.slot = lookup.found()->slot, .tombstone = IsTombstone(lookup.found()->entry)};
    }
    return resident;
  }

  Status Account(LookupsResult result, uint64_t* pages_read) {
    *pages_read += result.pages_read;
    if (!result.damaged_pages.empty()) {
      MutexLock lock(damage_mutex_);
      damaged_since_.insert(result.damaged_pages.begin(), result.damaged_pages.end());
    }
    return std::move(result.status);
  }

  Status ForEachImpl(const std::function<Status(const IndexEntry&)>& visit) override {
    StoreList stores;
    {
      ReaderLock lock(mutex_);
      stores = *frozen_;
      stores.push_back(active_->Snapshot());
    }
    uint64_t pages_read = 0;
    return Account(ScanStores(stores, hash_secret_, visit), &pages_read);
  }

  // --- Writing: the calls that come one at a time ---

  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override {
    complete_ = complete;
    for (const IndexEntry& entry : entries) SILTFS_RETURN_IF_ERROR(Enter(entry));
    return Status::Ok();
  }

  Status DeleteImpl(const ChunkName& name) override {
    Lookup lookup(name, LogStore::HashOf(name, hash_secret_));
    uint64_t pages_read = 0;
    Status status = Find({&lookup, 1}, &pages_read);
    put_flash_reads_.fetch_add(pages_read, std::memory_order_relaxed);
    SILTFS_RETURN_IF_ERROR(std::move(status));
    if (!lookup.found() || IsTombstone(lookup.found()->entry)) return CheckWriting();
    return Enter({.name = name, .location = {}});
  }

  // Enters an entry or tombstone into the active store, or into a new one if that is full.
  Status Enter(const IndexEntry& entry) {
    const uint64_t hash = LogStore::HashOf(entry.name, hash_secret_);
    SILTFS_RETURN_IF_ERROR(MakeRoom());
    SILTFS_ASSIGN_OR_RETURN(auto old, FindInActive(entry.name, hash));
    if (Append(entry, hash, old)) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(Freeze());
    if (Append(entry, hash, std::nullopt)) return Status::Ok();
    return Stop({StatusCode::kIoError, "an empty LogStore refused an entry"});
  }

  bool Append(const IndexEntry& entry, uint64_t hash,
              const std::optional<LogStore::Resident>& old) {
    WriterLock lock(mutex_);
    return old ? active_->Replace(hash, *old, entry, complete_)
               : active_->Insert(hash, entry, complete_);
  }

  // Keeps the tail and the log bounded: afterwards one more page fits into both.
  Status MakeRoom() {
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    const std::shared_ptr<LogStore> active = Active();
    if (active->sealed_pages() >= options_.max_log_pages) return Freeze();
    if (active->sealed_tail_pages() >= options_.write_batch_pages) return WriteOut(*active);
    return Status::Ok();
  }

  Status WriteOut(LogStore& active) {
    const uint64_t size = uint64_t{active.sealed_tail_pages()} * kLogPageSize;
    if (size == 0) return Status::Ok();
    // Pages that were never reported durable may be written again, so a full disk is no end.
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(active.WriteOut()));
    unsynced_ = true;
    flash_bytes_written_.fetch_add(size, std::memory_order_relaxed);
    WriterLock lock(mutex_);
    active.DropWritten();
    return Status::Ok();
  }

  Status FlushImpl(uint64_t complete) override {
    complete_ = complete;
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    return FlushActive();
  }

  Status CloseImpl(uint64_t complete) override { return FlushImpl(complete); }

  Status FlushActive() {
    SealOpenPage(/*say_complete=*/true);
    SILTFS_RETURN_IF_ERROR(SyncActive());
    durable_.store(complete_, std::memory_order_release);
    return Status::Ok();
  }

  // Ends the page being filled if it has entries, or if a page is needed to say up to where
  // everything was put.
  void SealOpenPage(bool say_complete) {
    WriterLock lock(mutex_);
    const uint64_t said = std::max(active_->complete_sequence(), manifest_.complete_sequence);
    if (active_->HasOpenEntries() || (say_complete && complete_ > said)) {
      active_->SealPage(complete_);
    }
  }

  Status SyncActive() {
    const std::shared_ptr<LogStore> active = Active();
    SILTFS_RETURN_IF_ERROR(WriteOut(*active));
    if (!unsynced_) return Status::Ok();
    Status synced = active->Sync();
    if (!synced.ok()) return Stop(std::move(synced));
    unsynced_ = false;
    return Status::Ok();
  }

  // Ends the active store and begins another. Everything put so far is durable then.
  Status Freeze() {
    SealOpenPage(/*say_complete=*/false);  // the manifest will say it
    SILTFS_RETURN_IF_ERROR(SyncActive());
    freezing_ = true;
    return FinishFreeze();
  }

  Status FinishFreeze() {
    StoreManifest manifest = manifest_;
    const LogRecord log{.id = manifest.next_log_id++, .bucket_bits = options_.bucket_bits};
    manifest.logs.back().page_count = Active()->sealed_pages();
    manifest.logs.push_back(log);
    manifest.complete_sequence = complete_;
    auto file = CreateLogFile(env_, options_.directory, log.id);
    if (!file.ok()) return StopUnlessNoSpace(std::move(file).status());
    SILTFS_RETURN_IF_ERROR(
        StopUnlessNoSpace(WriteStoreManifest(env_, options_.directory, manifest)));
    flash_bytes_written_.fetch_add(EncodeStoreManifest(manifest).size(), std::memory_order_relaxed);
    manifest_ = std::move(manifest);
    freezing_ = false;
    durable_.store(complete_, std::memory_order_release);

    auto next = std::make_shared<LogStore>(
        LogStore::Config{.id = log.id, .bucket_bits = log.bucket_bits, .hash_secret = hash_secret_},
        std::move(*file));
    WriterLock lock(mutex_);
    auto frozen = std::make_shared<StoreList>(*frozen_);
    frozen->push_back(std::exchange(active_, std::move(next)));
    frozen_ = std::move(frozen);
    return Status::Ok();
  }

  // Whether anything may be written. Until a freeze that failed halfway is finished nothing may:
  // which logs the manifest on flash lists is not known then, so an entry in either log might not
  // count after a crash.
  Status CheckWriting() {
    if (!stopped_.ok()) return stopped_;
    return freezing_ ? FinishFreeze() : Status::Ok();
  }

  Status Stop(Status why) {
    stopped_ = why;
    stopped_.IgnoreError("asked for before the next write");
    return why;
  }

  Status StopUnlessNoSpace(Status status) {
    return status.ok() || status.Is(StatusCode::kNoSpace) ? std::move(status)
                                                          : Stop(std::move(status));
  }

  std::shared_ptr<LogStore> Active() {
    ReaderLock lock(mutex_);
    return active_;
  }

  // --- State ---

  uint64_t DurableSequenceImpl() const override { return durable_.load(std::memory_order_acquire); }

  IndexStats StatsImpl() const override {
    IndexStats stats;
    stats.engine = "silt";
    {
      ReaderLock lock(mutex_);
      for (const auto& store : *frozen_) stats.stores.push_back(store->Stats());
      stats.stores.push_back(active_->Stats());
    }
    for (const IndexComponentStats& store : stats.stores) {
      stats.entries += store.entries;
      stats.memory_bytes += store.memory_bytes;
      stats.flash_bytes += store.flash_bytes;
    }
    stats.flash_reads = flash_reads_.load(std::memory_order_relaxed);
    stats.put_flash_reads = put_flash_reads_.load(std::memory_order_relaxed);
    stats.flash_bytes_written = flash_bytes_written_.load(std::memory_order_relaxed);
    MutexLock lock(damage_mutex_);
    stats.damaged_pages = damaged_at_open_ + damaged_since_.size();
    return stats;
  }

  Env& env_;
  const SiltIndexOptions options_;
  const uint64_t hash_secret_;

  // Used by the writing calls only, which come one at a time.
  StoreManifest manifest_;
  uint64_t complete_;      // up to where everything has been put
  bool unsynced_ = false;  // the active log has pages that were written but not synced
  bool freezing_ =
      false;        // the active log is finished; the manifest does not say so yet, or nobody knows
  Status stopped_;  // why nothing can be written any more

  // Guards the active store: the writing calls change it and where this points; they alone may look
  // at it without the lock, and write its tail out. Held for memory accesses only, never for the
  // device's.
  mutable SharedMutex mutex_;
  std::shared_ptr<LogStore> active_ SILTFS_GUARDED_BY(mutex_);
  std::shared_ptr<const StoreList> frozen_ SILTFS_GUARDED_BY(mutex_);

  std::atomic<uint64_t> durable_;
  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> put_flash_reads_{0};
  std::atomic<uint64_t> flash_bytes_written_;

  const uint64_t damaged_at_open_;
  mutable Mutex damage_mutex_;  // nothing else is taken under it
  std::set<std::pair<uint64_t, uint32_t>> damaged_since_ SILTFS_GUARDED_BY(damage_mutex_);
};

}  // namespace

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(RecoveredStores stores, RecoverStores(env, options));
  return std::unique_ptr<ChunkIndex>(std::make_unique<SiltIndex>(env, options, std::move(stores)));
}

}  // namespace siltfs
