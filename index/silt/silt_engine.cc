#include "index/silt/silt_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "index/flash/parallel_jobs.h"
#include "index/flash/read_ahead.h"
#include "index/silt/entry_merge.h"
#include "index/silt/recovery.h"
#include "index/silt/verify.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

// Threads that sync logs. A sync waits for the device; on a busy machine it also waits for a
// processor.
constexpr size_t kSyncingThreads = 8;
// A listing may use this multiple of a merge's sort memory. A listing writes nothing, so its passes
// over the HashStores take most of its time. With 100 million entries it would need 18 passes with
// a merge's memory, and needs 5 with this factor.
constexpr size_t kListingSortFactor = 4;

}  // namespace

SiltEngine::SiltEngine(Env& env, const SiltIndexOptions& options, EntryOwner* owner,
                       std::unique_ptr<Recovery> recovery)
    : options_(options),
      owner_(owner),
      stores_(env, options, std::move(recovery)),
      maintenance_(stores_),
      readers_(env, [this] { return stores_.memory_plan().read_depth; }) {
  max_log_pages_ = stores_.memory_plan().max_log_pages;
}

Result<std::unique_ptr<SiltEngine>> SiltEngine::Open(Env& env, const SiltIndexOptions& options,
                                                     EntryOwner* owner) {
  SILTFS_ASSIGN_OR_RETURN(auto recovery, Recovery::Begin(env, options, owner));
  std::unique_ptr<SiltEngine> engine(new SiltEngine(env, options, owner, std::move(recovery)));
  if (!options.serve_early) SILTFS_RETURN_IF_ERROR(engine->WaitUntilOpen());
  return engine;
}

// --- Opening ---

Status SiltEngine::WaitUntilOpen() {
  if (open_) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(stores_.Recover());
  complete_ = std::max(complete_, stores_.durable_sequence_found());
  open_ = true;
  maintenance_.Wake();
  return Status::Ok();
}

// --- Lookups ---

class SiltEngine::GetBatch final : public LookupBatch<Lookup> {
 public:
  GetBatch(SiltEngine& index, std::span<const ChunkName> names, const Found& found)
      : index_(index), names_(names), found_(found), pins_(index.stores_.partition_count()) {}
  ~GetBatch() override {
    Count(index_.flash_reads_, pages_read_);  // each request reads one page
    Count(index_.flash_pages_read_, pages_read_);
  }

  size_t size() const override { return names_.size(); }

  Lookup Prepare(size_t i) override {
    const Lookup lookup(index_.KeyOf(names_[i]));
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
    const Partition::Pin& pin = pins_[PartitionOf(lookup.hash(), index_.stores_.partition_bits())];
    if (pin.active == nullptr) {
      lookup.Abandon();  // status_ has the reason
      return;
    }
    ReaderLock lock(PartitionFor(lookup).mutex);
    lookup.Begin(*pin.active, pin.version.get());
  }

  // Finishes one lookup that was begun.
  Status Finish(Lookup& lookup) {
    if (!lookup.NextRead()) return Status::Ok();
    const Partition::Pin& pin = pins_[PartitionOf(lookup.hash(), index_.stores_.partition_bits())];
    if (!index_.options_.background || !WantsReadAhead(*pin.version)) {
      FinishLookup(lookup);
      return Status::Ok();
    }
    SILTFS_ASSIGN_OR_RETURN(LookupReader reader, index_.readers_.Take());
    pages_read_ += FinishLookupAhead(lookup, reader);
    index_.readers_.Return(std::move(reader));
    return Status::Ok();
  }

  void End(size_t i, const Lookup& lookup) override {
    pages_read_ += lookup.pages_read();
    lookup.CountProbes();
    if (lookup.damaged_pages() > 0) index_.stores_.CountDamage(lookup.damaged_pages());
    if (!lookup.status().ok() && status_.ok()) status_ = lookup.status();
    if (lookup.damaged_pages() > 0 && index_.stores_.needs_all_entries()) {
      // Return an error, because an older entry must not be returned instead of the lost one.
      if (status_.ok()) status_ = lookup.Damage();
      return;
    }
    const auto& found = lookup.found();
    if (found && !IsTombstone(*found)) found_(i, {*found, lookup.found_rest()});
  }

  Status TakeStatus() { return std::move(status_); }

 private:
  const Partition& PartitionFor(const Lookup& lookup) const {
    return index_.stores_.partition(PartitionOf(lookup.hash(), index_.stores_.partition_bits()));
  }

  SiltEngine& index_;
  const std::span<const ChunkName> names_;
  const Found& found_;
  // By partition; a partition is pinned at its first lookup. The pins keep the stores alive that
  // lookups search.
  std::vector<Partition::Pin> pins_;
  uint64_t pages_read_ = 0;
  Status status_;
};

Status SiltEngine::Get(std::span<const ChunkName> names, const Found& found) {
  GetBatch batch(*this, names, found);
  if (names.size() <= kFewLookups) {
    for (size_t i = 0; i < names.size(); ++i) {
      Lookup lookup = batch.Prepare(i);
      batch.Begin(lookup);
      const Status finished = batch.Finish(lookup);
      if (!finished.ok()) {
        Status earlier = batch.TakeStatus();
        return earlier.ok() ? finished : earlier;
      }
      batch.End(i, lookup);
    }
  } else {
    SILTFS_ASSIGN_OR_RETURN(LookupReader reader, readers_.Take());
    RunLookups(batch, reader);
    readers_.Return(std::move(reader));
  }
  return batch.TakeStatus();
}

// Finishes a lookup of a writing call.
Status SiltEngine::FinishForPut(Lookup& lookup) {
  FinishLookup(lookup);
  lookup.CountProbes();
  Count(put_flash_reads_, lookup.pages_read());
  if (lookup.damaged_pages() > 0) stores_.CountDamage(lookup.damaged_pages());
  return lookup.status();
}

OrderKey SiltEngine::KeyOf(const ChunkName& name) const {
  return stores_.name_hash().KeyOf(layout(), name);
}

// Returns the entry of a key in the active store; empty if it is absent.
Result<std::optional<LogStore::Resident>> SiltEngine::FindInActive(Partition& partition,
                                                                   const OrderKey& key) {
  Lookup lookup(key);
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

Status SiltEngine::ForEach(const Visit& visit) {
  SILTFS_RETURN_IF_ERROR(stores_.Recover());
  uint64_t damaged_pages = 0;
  for (size_t p = 0; p < stores_.partition_count(); ++p) {
    const auto version = stores_.partition(p).Snapshot();
    EntryMerge merge(*version, {.name_hash = stores_.name_hash(),
                                .partition_bits = stores_.partition_bits(),
                                .partition = static_cast<uint32_t>(p),
                                .sort_memory_bytes =
                                    kListingSortFactor * stores_.memory_plan().sort_memory_bytes,
                                .layout = layout()});
    SILTFS_RETURN_IF_ERROR(merge.Run(visit));
    if (merge.damaged_pages() > 0) stores_.CountDamage(merge.damaged_pages());
    damaged_pages += merge.damaged_pages();
  }
  if (damaged_pages > 0 && stores_.needs_all_entries()) {
    return Status(StatusCode::kCorruption,
                  fmt::format("has {} damaged pages, and their entries are missing", damaged_pages))
        .At(options_.directory);
  }
  return Status::Ok();
}

Status SiltEngine::Verify(const std::function<void(const IndexFinding&)>& report) {
  SILTFS_RETURN_IF_ERROR(stores_.Recover());
  for (size_t p = 0; p < stores_.partition_count(); ++p) {
    const auto version = stores_.partition(p).Snapshot();
    SILTFS_RETURN_IF_ERROR(VerifyPartition(*version,
                                           {.name_hash = stores_.name_hash(),
                                            .partition_bits = stores_.partition_bits(),
                                            .partition = static_cast<uint32_t>(p),
                                            .layout = layout()},
                                           report));
  }
  return Status::Ok();
}

// --- Writing: calls are serialised ---

Status SiltEngine::BeginPut(uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = complete;
  return logs_fit_ ? Status::Ok() : ShrinkLogs();
}

Status SiltEngine::EndPut(size_t entries) {
  since_flush_ += entries;
  if (!options_.synchronous && since_flush_ < options_.entries_per_flush) return Status::Ok();
  return MakeDurable();
}

Status SiltEngine::Delete(const ChunkName& name) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  Lookup lookup(KeyOf(name));
  const Partition& partition =
      stores_.partition(PartitionOf(lookup.hash(), stores_.partition_bits()));
  const Partition::Pin pin = partition.Get();
  {
    ReaderLock lock(partition.mutex);
    lookup.Begin(*pin.active, pin.version.get());
  }
  SILTFS_RETURN_IF_ERROR(FinishForPut(lookup));
  const bool may_be_there = lookup.damaged_pages() > 0;
  if (!may_be_there && (!lookup.found() || IsTombstone(*lookup.found()))) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Enter(IndexEntry{.name = name, .location = {}}));
  return options_.synchronous ? MakeDurable() : Status::Ok();
}

// Inserts an entry or tombstone into the active store of its partition. If this store is full,
// freezes it and uses a new one.
Status SiltEngine::Enter(const SlotEntry& entry) {
  const OrderKey key = KeyOf(entry.name);
  const uint32_t p = PartitionOf(key.hash, stores_.partition_bits());
  Partition& partition = stores_.partition(p);
  SILTFS_RETURN_IF_ERROR(MakeRoom(p));
  SILTFS_ASSIGN_OR_RETURN(auto old, FindInActive(partition, key));
  if (Append(partition, entry, key.hash, old)) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(Freeze(p));
  if (Append(partition, entry, key.hash, std::nullopt)) return Status::Ok();
  return Stop({StatusCode::kIoError, "an empty LogStore refused an entry"});
}

bool SiltEngine::Append(Partition& partition, const SlotEntry& entry, uint64_t hash,
                        const std::optional<LogStore::Resident>& old) {
  WriterLock lock(partition.mutex);
  return old ? partition.active->Replace(hash, *old, entry, complete_)
             : partition.active->Insert(hash, entry, complete_);
}

// Makes room in the tail and in the log. After the call one more page fits into both.
Status SiltEngine::MakeRoom(uint32_t p) {
  const LogStore& active = Active(p);
  if (active.sealed_pages() >= max_log_pages_ || EndsEarly(p, active)) return Freeze(p);
  if (active.sealed_tail_pages() >= options_.write_batch_pages) return WriteOut(p);
  return Status::Ok();
}

// All partitions get the same number of entries, so their LogStores would become full at the same
// time again and again. Therefore the first LogStore of partition i of P takes only (i + 1) / P of
// its entries.
bool SiltEngine::EndsEarly(uint32_t p, const LogStore& active) const {
  const size_t partitions = stores_.partition_count();
  if (active.first_page() != 0 || p + 1 == partitions) return false;
  return active.table().size() * partitions >= (p + 1) * active.table().capacity();
}

Status SiltEngine::WriteOut(uint32_t p) {
  LogStore& active = Active(p);
  const uint64_t size = uint64_t{active.sealed_tail_pages()} * kPageSize;
  if (size == 0) return Status::Ok();
  // Pages that were never reported durable may be written again, so kNoSpace is not permanent.
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(active.WriteOut()));
  stores_.CountWritten(size);
  unsynced_.insert(active.id());
  WriterLock lock(stores_.partition(p).mutex);
  active.DropWritten();
  return Status::Ok();
}

// Ends the active store of a partition and begins another.
Status SiltEngine::Freeze(uint32_t p) {
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(maintenance_.WaitForRoom()));
  SealOpenPage(p);
  SILTFS_RETURN_IF_ERROR(WriteOut(p));
  // After BeginLog the frozen log may become durable, as a HashStore, at any moment. So the owner's
  // data must be durable before BeginLog.
  SILTFS_RETURN_IF_ERROR(MakeOwnerDurable());
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(stores_.BeginLog(p)));
  // New logs become larger as the index grows (StoreSet::FitLogs).
  max_log_pages_ = stores_.memory_plan().max_log_pages;
  maintenance_.Wake();
  return Status::Ok();
}

void SiltEngine::SealOpenPage(uint32_t p) {
  LogStore& active = Active(p);
  if (!active.HasOpenEntries()) return;
  WriterLock lock(stores_.partition(p).mutex);
  active.SealPage(complete_);
}

Status SiltEngine::Flush(uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = complete;
  return MakeDurable();
}

Result<bool> SiltEngine::DropGone(size_t partition, uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  complete_ = complete;
  const auto p = static_cast<uint32_t>(partition);
  // A merge covers only HashStores, so the log is frozen first.
  if (!Active(p).Empty()) SILTFS_RETURN_IF_ERROR(Freeze(p));
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(maintenance_.Rewrite(p)));
  return partition + 1 < stores_.partition_count();
}

Status SiltEngine::Close(uint64_t complete) {
  Status flushed = Flush(complete);
  maintenance_.Stop();
  return flushed.ok() ? StopUnlessNoSpace(stores_.FoldManifest()) : flushed;
}

Status SiltEngine::MakeDurable() {
  if (!options_.background) SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(maintenance_.WaitForRoom()));
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    SealOpenPage(p);
    SILTFS_RETURN_IF_ERROR(WriteOut(p));
  }
  SILTFS_RETURN_IF_ERROR(MakeOwnerDurable());
  SILTFS_RETURN_IF_ERROR(SyncLogs());
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(stores_.RecordDurable(complete_)));
  durable_.store(complete_, std::memory_order_release);
  since_flush_ = 0;
  return Status::Ok();
}

Status SiltEngine::MakeOwnerDurable() {
  return owner_ == nullptr ? Status::Ok() : StopUnlessNoSpace(owner_->MakeDurable());
}

// Syncs all logs with unsynced pages, except logs that have been converted into HashStores.
Status SiltEngine::SyncLogs() {
  std::vector<std::shared_ptr<const LogStore>> logs;
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    const Partition::Pin pin = stores_.partition(p).Get();
    const auto add = [&](const std::shared_ptr<const LogStore>& log) {
      if (unsynced_.contains(log->id())) logs.push_back(log);
    };
    std::for_each(pin.version->logs.begin(), pin.version->logs.end(), add);
    add(pin.active);
  }
  // Begin all syncs before waiting for the first. A journaling file system then makes most logs
  // durable with one journal commit, instead of one commit for each log.
  for (const auto& log : logs) log->BeginSync();
  ParallelJobs syncing(logs.size(), options_.background ? kSyncingThreads : 0,
                       [&](size_t i) { return logs[i]->Sync(); });
  Status synced = ForGood(syncing.Finish());
  if (!synced.ok()) return Stop(std::move(synced));
  unsynced_.clear();
  return Status::Ok();
}

Status SiltEngine::CheckWriting() {
  if (!stopped_.ok()) return stopped_;
  Status failed = maintenance_.failure();
  return failed.ok() ? Status::Ok() : Stop(std::move(failed));
}

Status SiltEngine::Stop(Status why) {
  stopped_ = why;
  stopped_.IgnoreError("the next write returns it");
  return why;
}

Status SiltEngine::StopUnlessNoSpace(Status status) {
  return status.ok() || status.Is(StatusCode::kNoSpace) ? std::move(status)
                                                        : Stop(std::move(status));
}

// Returns the active store. Only the writing calls may use it, because the next writing call may
// replace the active store.
LogStore& SiltEngine::Active(uint32_t p) {
  Partition& partition = stores_.partition(p);
  ReaderLock lock(partition.mutex);
  return *partition.active;
}

// --- Memory ---

Status SiltEngine::SetMemoryLimit(uint64_t bytes) {
  stores_.SetMemoryLimit(bytes);
  max_log_pages_ = stores_.memory_plan().max_log_pages;
  maintenance_.FitMemory();
  readers_.Clear();
  SILTFS_RETURN_IF_ERROR(WaitUntilOpen());
  logs_fit_ = options_.read_only;
  return logs_fit_ ? Status::Ok() : ShrinkLogs();
}

// Freezes active stores with tables larger than the memory plan allows, because their entries take
// less memory in HashStores. On a full disk these stores stay active until there is room.
Status SiltEngine::ShrinkLogs() {
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  Status shrunk = FreezeLargeLogs();
  logs_fit_ = shrunk.ok();
  if (!shrunk.Is(StatusCode::kNoSpace)) return shrunk;
  shrunk.IgnoreError("the next Put tries again");
  return Status::Ok();
}

Status SiltEngine::FreezeLargeLogs() {
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

uint64_t SiltEngine::durable_sequence() const {
  if (!stores_.Recover().ok()) return 0;
  return std::max(durable_.load(std::memory_order_acquire), stores_.durable_sequence_found());
}

IndexStats SiltEngine::stats() const {
  IndexStats stats;
  stats.engine = kSiltEngineName;
  for (size_t p = 0; p < stores_.partition_count(); ++p) {
    const Partition& partition = stores_.partition(p);
    ReaderLock lock(partition.mutex);
    if (partition.active == nullptr) continue;  // not recovered yet
    stats.stores.push_back(partition.active->Stats());
    partition.version->AddStats(stats.stores);
  }
  for (const IndexComponentStats& store : stats.stores) {
    stats.entries += store.entries;
    stats.memory_bytes += store.memory_bytes;
    stats.flash_bytes += store.flash_bytes;
  }
  stats.memory_bytes += maintenance_.memory_bytes();
  stats.memory_bytes += readers_.memory_bytes();
  stats.flash_reads = flash_reads_.load(std::memory_order_relaxed);
  stats.flash_pages_read = flash_pages_read_.load(std::memory_order_relaxed);
  stats.put_flash_reads = put_flash_reads_.load(std::memory_order_relaxed);
  stats.flash_bytes_written = stores_.bytes_written();
  stats.damaged_pages = stores_.damaged_pages();
  stats.damaged_filters = stores_.damaged_filters();
  stats.merges = maintenance_.merges();
  stats.conversions = maintenance_.conversions();
  stats.merge_backlog = stores_.frozen_logs();
  stats.load_backlog = stores_.recovered() ? maintenance_.load_backlog() : 1;
  return stats;
}

}  // namespace siltfs
