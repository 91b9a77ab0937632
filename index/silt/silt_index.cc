#include "index/silt/silt_index.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "index/silt/entry_merge.h"
#include "index/silt/lookup.h"
#include "index/silt/read_ahead.h"
#include "index/silt/recovery.h"
#include "index/silt/store_set.h"
#include "index/silt/upkeep.h"
#include "index/silt/verify.h"

namespace siltfs {
namespace {

// Batches of fewer names are not worth setting a queue up.
constexpr size_t kFewLookups = 3;
// As many calls of Get as may come at once again and again.
constexpr size_t kMostIdleReaders = 4;

class SiltIndex final : public ChunkIndex {
 public:
  SiltIndex(Env& env, const SiltIndexOptions& options, std::unique_ptr<Recovery> recovery)
      : ChunkIndex(options.read_only),
        options_(options),
        stores_(env, options, std::move(recovery)),
        upkeep_(stores_) {
    max_log_pages_ = stores_.memory_plan().max_log_pages;
  }

 private:
  // --- Opening ---

  Status WaitUntilOpenImpl() override {
    if (open_) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(stores_.Recover());
    complete_ = std::max(complete_, stores_.durable_sequence_found());
    open_ = true;
    upkeep_.Wake();
    return Status::Ok();
  }

  // --- Lookups ---

  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override {
    GetBatch batch(*this, names, results);
    if (names.size() <= kFewLookups) {
      for (size_t i = 0; i < names.size(); ++i) {
        Lookup lookup = batch.Prepare(i);
        batch.Begin(lookup);
        SILTFS_RETURN_IF_ERROR(batch.Finish(lookup));
        batch.End(i, lookup);
      }
    } else {
      SILTFS_ASSIGN_OR_RETURN(LookupReader reader, TakeReader());
      RunLookups(batch, reader);
      Return(std::move(reader));
    }
    return batch.TakeStatus();
  }

  class GetBatch final : public LookupBatch {
   public:
    GetBatch(SiltIndex& index, std::span<const ChunkName> names,
             std::span<std::optional<Location>> results)
        : index_(index), names_(names), results_(results), pins_(index.stores_.partition_count()) {}
    ~GetBatch() override { Count(index_.flash_reads_, pages_read_); }

    size_t size() const override { return names_.size(); }

    Lookup Prepare(size_t i) override {
      const Lookup lookup(names_[i], HashOf(names_[i], index_.stores_.hash_secret()));
      const uint32_t p = PartitionOf(lookup.hash(), index_.stores_.partition_bits());
      Partition::Pin& pin = pins_[p];
      if (pin.active == nullptr) {
        Status there = index_.stores_.NeedPartition(p);
        if (!there.ok() && status_.ok()) status_ = std::move(there);
        pin = index_.stores_.partition(p).Get();
      }
      if (pin.active != nullptr) pin.active->Prefetch(lookup.hash());
      return lookup;
    }

    void Begin(Lookup& lookup) override {
      const Partition::Pin& pin =
          pins_[PartitionOf(lookup.hash(), index_.stores_.partition_bits())];
      if (pin.active == nullptr) {
        lookup.Abandon();  // status_ says why
        return;
      }
      ReaderLock lock(PartitionFor(lookup).mutex);
      lookup.Begin(*pin.active, pin.version.get());
    }

    // Of one lookup, when it was begun.
    Status Finish(Lookup& lookup) {
      if (!lookup.NextRead()) return Status::Ok();
      const Partition::Pin& pin =
          pins_[PartitionOf(lookup.hash(), index_.stores_.partition_bits())];
      if (!index_.options_.background || !WantsReadAhead(*pin.version)) {
        FinishLookup(lookup);
        return Status::Ok();
      }
      SILTFS_ASSIGN_OR_RETURN(LookupReader reader, index_.TakeReader());
      pages_read_ += FinishLookupAhead(lookup, reader);
      index_.Return(std::move(reader));
      return Status::Ok();
    }

    void End(size_t i, const Lookup& lookup) override {
      const auto& found = lookup.found();
      if (found && !IsTombstone(*found)) results_[i] = found->location;
      pages_read_ += lookup.pages_read();
      if (lookup.damaged_pages() > 0) index_.stores_.CountDamage(lookup.damaged_pages());
      if (!lookup.status().ok() && status_.ok()) status_ = lookup.status();
    }

    Status TakeStatus() { return std::move(status_); }

   private:
    const Partition& PartitionFor(const Lookup& lookup) const {
      return index_.stores_.partition(PartitionOf(lookup.hash(), index_.stores_.partition_bits()));
    }

    SiltIndex& index_;
    const std::span<const ChunkName> names_;
    const std::span<std::optional<Location>> results_;
    std::vector<Partition::Pin> pins_;  // keep what lookups look at; taken at a partition's first
    uint64_t pages_read_ = 0;
    Status status_;
  };

  // Of a lookup that a writing call has begun.
  Status FinishForPut(Lookup& lookup) {
    FinishLookup(lookup);
    Count(put_flash_reads_, lookup.pages_read());
    if (lookup.damaged_pages() > 0) stores_.CountDamage(lookup.damaged_pages());
    return lookup.status();
  }

  // Kept for the next call, unless the plan has changed or there are enough of them.
  void Return(LookupReader reader) {
    const size_t bytes = reader.pages.size();
    MutexLock lock(readers_mutex_);
    if (bytes != ReaderBytes() || idle_readers_.size() >= kMostIdleReaders) return;
    idle_readers_.push_back(std::move(reader));
  }
  size_t ReaderBytes() const { return size_t{2} * stores_.memory_plan().read_depth * kPageSize; }

  Result<LookupReader> TakeReader() {
    {
      MutexLock lock(readers_mutex_);
      if (!idle_readers_.empty()) {
        LookupReader reader = std::move(idle_readers_.back());
        idle_readers_.pop_back();
        return reader;
      }
    }
    const MemoryPlan plan = stores_.memory_plan();
    SILTFS_ASSIGN_OR_RETURN(auto queue, stores_.env().NewReadQueue(plan.read_depth));
    return LookupReader{.queue = std::move(queue),
                        .pages = AlignedBuffer(size_t{2} * plan.read_depth * kPageSize)};
  }

  // What the active store holds of a name; nothing if it is not there.
  Result<std::optional<LogStore::Resident>> FindInActive(Partition& partition,
                                                         const ChunkName& name, uint64_t hash) {
    Lookup lookup(name, hash);
    {
      ReaderLock lock(partition.mutex);
      lookup.Begin(*partition.active, nullptr);
    }
    SILTFS_RETURN_IF_ERROR(FinishForPut(lookup));
    std::optional<LogStore::Resident> resident;
    if (const auto slot = lookup.active_slot()) {
      resident = {.slot = *slot, .tombstone = IsTombstone(*lookup.found())};
    }
    return resident;
  }

  Status ForEachImpl(const std::function<Status(const IndexEntry&)>& visit) override {
    SILTFS_RETURN_IF_ERROR(stores_.Recover());
    for (size_t p = 0; p < stores_.partition_count(); ++p) {
      const auto version = stores_.partition(p).Snapshot();
      EntryMerge merge(*version, {.hash_secret = stores_.hash_secret(),
                                  .partition_bits = stores_.partition_bits(),
                                  .partition = static_cast<uint32_t>(p),
                                  .sort_memory_bytes = stores_.memory_plan().sort_memory_bytes});
      SILTFS_RETURN_IF_ERROR(
          merge.Run([&](const OrderKey&, const IndexEntry& entry) { return visit(entry); }));
      if (merge.damaged_pages() > 0) stores_.CountDamage(merge.damaged_pages());
    }
    return Status::Ok();
  }

  Status VerifyImpl(const std::function<void(const IndexFinding&)>& report) override {
    SILTFS_RETURN_IF_ERROR(stores_.Recover());
    for (size_t p = 0; p < stores_.partition_count(); ++p) {
      const auto version = stores_.partition(p).Snapshot();
      SILTFS_RETURN_IF_ERROR(VerifyPartition(*version,
                                             {.hash_secret = stores_.hash_secret(),
                                              .partition_bits = stores_.partition_bits(),
                                              .partition = static_cast<uint32_t>(p)},
                                             report));
    }
    return Status::Ok();
  }

  // --- Writing: the calls that come one at a time ---

  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override {
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    complete_ = complete;
    if (!logs_fit_) SILTFS_RETURN_IF_ERROR(ShrinkLogs());
    for (const IndexEntry& entry : entries) SILTFS_RETURN_IF_ERROR(Enter(entry));
    since_flush_ += entries.size();
    if (!options_.synchronous && since_flush_ < options_.entries_per_flush) return Status::Ok();
    return MakeDurable();
  }

  Status DeleteImpl(const ChunkName& name) override {
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    Lookup lookup(name, HashOf(name, stores_.hash_secret()));
    const Partition& partition =
        stores_.partition(PartitionOf(lookup.hash(), stores_.partition_bits()));
    const Partition::Pin pin = partition.Get();
    {
      ReaderLock lock(partition.mutex);
      lookup.Begin(*pin.active, pin.version.get());
    }
    SILTFS_RETURN_IF_ERROR(FinishForPut(lookup));
    if (!lookup.found() || IsTombstone(*lookup.found())) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(Enter({.name = name, .location = {}}));
    return options_.synchronous ? MakeDurable() : Status::Ok();
  }

  // Enters an entry or tombstone into the active store of its partition, or into a new one if that
  // is full.
  Status Enter(const IndexEntry& entry) {
    const uint64_t hash = HashOf(entry.name, stores_.hash_secret());
    const uint32_t p = PartitionOf(hash, stores_.partition_bits());
    Partition& partition = stores_.partition(p);
    SILTFS_RETURN_IF_ERROR(MakeRoom(p));
    SILTFS_ASSIGN_OR_RETURN(auto old, FindInActive(partition, entry.name, hash));
    if (Append(partition, entry, hash, old)) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(Freeze(p));
    if (Append(partition, entry, hash, std::nullopt)) return Status::Ok();
    return Stop({StatusCode::kIoError, "an empty LogStore refused an entry"});
  }

  bool Append(Partition& partition, const IndexEntry& entry, uint64_t hash,
              const std::optional<LogStore::Resident>& old) {
    WriterLock lock(partition.mutex);
    return old ? partition.active->Replace(hash, *old, entry, complete_)
               : partition.active->Insert(hash, entry, complete_);
  }

  // Keeps the tail and the log bounded: afterwards one more page fits into both.
  Status MakeRoom(uint32_t p) {
    const LogStore& active = Active(p);
    if (active.sealed_pages() >= max_log_pages_) return Freeze(p);
    if (active.sealed_tail_pages() >= options_.write_batch_pages) return WriteOut(p);
    return Status::Ok();
  }

  Status WriteOut(uint32_t p) {
    LogStore& active = Active(p);
    const uint64_t size = uint64_t{active.sealed_tail_pages()} * kPageSize;
    if (size == 0) return Status::Ok();
    // Pages that were never reported durable may be written again, so a full disk is no end.
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(active.WriteOut()));
    stores_.CountWritten(size);
    unsynced_.insert(active.id());
    WriterLock lock(stores_.partition(p).mutex);
    active.DropWritten();
    return Status::Ok();
  }

  // Ends the active store of a partition and begins another.
  Status Freeze(uint32_t p) {
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(upkeep_.WaitForRoom()));
    SealOpenPage(p);
    SILTFS_RETURN_IF_ERROR(WriteOut(p));
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(stores_.BeginLog(p)));
    upkeep_.Wake();
    return Status::Ok();
  }

  void SealOpenPage(uint32_t p) {
    LogStore& active = Active(p);
    if (!active.HasOpenEntries()) return;
    WriterLock lock(stores_.partition(p).mutex);
    active.SealPage(complete_);
  }

  Status FlushImpl(uint64_t complete) override {
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    complete_ = complete;
    return MakeDurable();
  }

  Status CloseImpl(uint64_t complete) override {
    Status flushed = FlushImpl(complete);
    upkeep_.Stop();
    return flushed;
  }

  Status MakeDurable() {
    if (!options_.background) SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(upkeep_.WaitForRoom()));
    for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
      SealOpenPage(p);
      SILTFS_RETURN_IF_ERROR(WriteOut(p));
    }
    SILTFS_RETURN_IF_ERROR(SyncLogs());
    SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(stores_.RecordDurable(complete_)));
    durable_.store(complete_, std::memory_order_release);
    since_flush_ = 0;
    return Status::Ok();
  }

  // All logs with pages that are not synced, but those that have been converted meanwhile.
  Status SyncLogs() {
    for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
      const Partition::Pin pin = stores_.partition(p).Get();
      auto sync = [&](const LogStore& log) {
        if (!unsynced_.contains(log.id())) return Status::Ok();
        Status synced = log.Sync();
        return synced.ok() ? synced : Stop(std::move(synced));
      };
      for (const auto& log : pin.version->logs) SILTFS_RETURN_IF_ERROR(sync(*log));
      SILTFS_RETURN_IF_ERROR(sync(*pin.active));
    }
    unsynced_.clear();
    return Status::Ok();
  }

  Status CheckWriting() {
    if (!stopped_.ok()) return stopped_;
    Status failed = upkeep_.failure();
    return failed.ok() ? Status::Ok() : Stop(std::move(failed));
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

  // For the writing calls, which alone change which it is.
  LogStore& Active(uint32_t p) {
    Partition& partition = stores_.partition(p);
    ReaderLock lock(partition.mutex);
    return *partition.active;
  }

  // --- Memory ---

  Status SetMemoryLimitImpl(uint64_t bytes) override {
    stores_.SetMemoryLimit(bytes);
    max_log_pages_ = stores_.memory_plan().max_log_pages;
    upkeep_.FitMemory();
    {
      MutexLock lock(readers_mutex_);
      idle_readers_.clear();
    }
    SILTFS_RETURN_IF_ERROR(WaitUntilOpenImpl());
    logs_fit_ = options_.read_only;
    return logs_fit_ ? Status::Ok() : ShrinkLogs();
  }

  // Ends active stores whose tables are larger than there is memory for: what they hold gets along
  // with less as HashStores. On a full disk they stay until there is room.
  Status ShrinkLogs() {
    SILTFS_RETURN_IF_ERROR(CheckWriting());
    Status shrunk = FreezeLargeLogs();
    logs_fit_ = shrunk.ok();
    if (!shrunk.Is(StatusCode::kNoSpace)) return shrunk;
    shrunk.IgnoreError("the next Put tries it again");
    return Status::Ok();
  }

  Status FreezeLargeLogs() {
    for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
      if (Active(p).bucket_bits() <= stores_.memory_plan().bucket_bits) continue;
      if (Active(p).Empty()) {
        stores_.ResizeEmptyLog(p);
      } else {
        SILTFS_RETURN_IF_ERROR(Freeze(p));
      }
    }
    return Status::Ok();
  }

  // --- State ---

  uint64_t DurableSequenceImpl() const override {
    if (!stores_.Recover().ok()) return 0;
    return std::max(durable_.load(std::memory_order_acquire), stores_.durable_sequence_found());
  }

  IndexStats StatsImpl() const override {
    IndexStats stats;
    stats.engine = "silt";
    for (size_t p = 0; p < stores_.partition_count(); ++p) {
      const Partition& partition = stores_.partition(p);
      ReaderLock lock(partition.mutex);
      if (partition.active == nullptr) continue;  // not there yet
      stats.stores.push_back(partition.active->Stats());
      for (const auto& store : partition.version->logs) stats.stores.push_back(store->Stats());
      for (const auto& store : partition.version->hashes) stats.stores.push_back(store->Stats());
      if (partition.version->sorted) stats.stores.push_back(partition.version->sorted->Stats());
    }
    for (const IndexComponentStats& store : stats.stores) {
      stats.entries += store.entries;
      stats.memory_bytes += store.memory_bytes;
      stats.flash_bytes += store.flash_bytes;
    }
    stats.memory_bytes += upkeep_.memory_bytes();
    {
      MutexLock lock(readers_mutex_);
      for (const LookupReader& reader : idle_readers_) stats.memory_bytes += reader.pages.size();
    }
    stats.flash_reads = flash_reads_.load(std::memory_order_relaxed);
    stats.put_flash_reads = put_flash_reads_.load(std::memory_order_relaxed);
    stats.flash_bytes_written = stores_.bytes_written();
    stats.damaged_pages = stores_.damaged_pages();
    stats.merges = upkeep_.merges();
    stats.conversions = upkeep_.conversions();
    stats.merge_backlog = stores_.frozen_logs();
    stats.load_backlog = stores_.recovered() ? upkeep_.load_backlog() : 1;
    return stats;
  }

  const SiltIndexOptions options_;

  // Used by the writing calls only, which come one at a time.
  uint64_t complete_ = 0;  // up to where everything has been put
  uint64_t since_flush_ = 0;
  bool open_ = false;            // all was recovered
  uint32_t max_log_pages_ = 0;   // of the memory plan
  bool logs_fit_ = false;        // active stores are as the memory plan says
  std::set<uint64_t> unsynced_;  // ids of logs with pages that were written but not synced
  Status stopped_;               // why nothing can be written any more

  std::atomic<uint64_t> durable_{0};  // by what was done since the index was opened
  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> put_flash_reads_{0};

  mutable Mutex readers_mutex_;  // nothing else is taken under it
  std::vector<LookupReader> idle_readers_ SILTFS_GUARDED_BY(readers_mutex_);

  mutable StoreSet stores_;  // what asks for the state may be what recovers it
  mutable Upkeep upkeep_;    // ends before the stores
};

}  // namespace

Result<std::unique_ptr<ChunkIndex>> OpenSiltIndex(Env& env, const SiltIndexOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(auto recovery, Recovery::Begin(env, options));
  auto index = std::make_unique<SiltIndex>(env, options, std::move(recovery));
  if (!options.serve_early) SILTFS_RETURN_IF_ERROR(index->WaitUntilOpen());
  return std::unique_ptr<ChunkIndex>(std::move(index));
}

}  // namespace siltfs
