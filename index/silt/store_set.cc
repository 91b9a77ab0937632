#include "index/silt/store_set.h"

#include <algorithm>

#include "index/silt/conversion.h"
#include "index/silt/merge_policy.h"

namespace siltfs {

StoreSet::StoreSet(Env& env, const SiltIndexOptions& options, std::unique_ptr<Recovery> recovery)
    : env_(env),
      options_(options),
      name_hash_(recovery->name_hash()),
      bucket_bits_(recovery->bucket_bits()),
      partition_bits_(recovery->partition_bits()),
      layout_(recovery->layout()),
      needs_all_entries_(recovery->needs_all_entries()),
      partitions_(size_t{1} << partition_bits_),
      recovery_(std::move(recovery)),
      recovery_failures_(partitions_.size()),
      plan_(PlanMemory(options.memory_limit, options, bucket_bits_, partition_bits_, layout_)),
      memory_limit_(options.memory_limit),
      wanted_bucket_bits_(bucket_bits_) {}

// --- Opening ---

Status StoreSet::NeedPartition(uint32_t p) {
  Partition& partition = partitions_[p];
  if (partition.recovered.load(std::memory_order_acquire)) return Status::Ok();
  MutexLock lock(recovery_mutex_);
  while (recovering_.contains(p)) partition_recovered_.Wait(recovery_mutex_);
  if (partition.recovered.load(std::memory_order_acquire)) return Status::Ok();
  Status& failure = recovery_failures_[p];
  if (!failure.ok()) return failure;
  recovering_.insert(p);
  Recovery& recovery = *recovery_;  // lives until all partitions are recovered
  recovery_mutex_.Unlock();
  auto stores = recovery.RecoverPartition(p, memory_plan().bucket_bits);
  if (stores.ok()) {
    frozen_logs_ += stores->version->logs.size();
    WriterLock partition_lock(partition.mutex);
    partition.active = std::move(stores->active);
    partition.Install(std::move(stores->version));
    partition.recovered.store(true, std::memory_order_release);
  }
  recovery_mutex_.Lock();
  recovering_.erase(p);
  partition_recovered_.NotifyAll();
  if (!stores.ok()) failure = std::move(stores).status();
  return failure;
}

Status StoreSet::Recover() {
  if (recovered()) return Status::Ok();
  MutexLock lock(finish_mutex_);
  if (recovered()) return Status::Ok();
  if (!recovery_failure_.ok()) return recovery_failure_;
  for (uint32_t p = 0; p < partitions_.size(); ++p) SILTFS_RETURN_IF_ERROR(NeedPartition(p));
  recovery_failure_ = FinishRecovery();
  return recovery_failure_;
}

Status StoreSet::FinishRecovery() {
  MutexLock lock(recovery_mutex_);
  const auto change_active = [this](uint32_t p, const Recovery::Change& change) {
    WriterLock partition_lock(partitions_[p].mutex);
    change(partitions_[p].active);
  };
  SILTFS_ASSIGN_OR_RETURN(Recovery::Outcome outcome, recovery_->Finish(change_active));
  {
    MutexLock manifest_lock(manifest_mutex_);
    next_id_ = outcome.manifest.next_id;
    manifest_ = std::move(outcome.manifest);
    manifest_log_ = std::move(outcome.manifest_log);
  }
  Count(bytes_written_, outcome.bytes_written);
  Count(damaged_pages_, outcome.damaged_pages);
  durable_sequence_found_ = outcome.durable_sequence;
  recovery_.reset();
  FitLogs();
  recovered_.store(true, std::memory_order_release);
  return Status::Ok();
}

// --- Memory ---

void StoreSet::SetMemoryLimit(uint64_t bytes) {
  MutexLock lock(plan_mutex_);
  memory_limit_ = bytes;
  plan_ = PlanMemory(bytes, options_, wanted_bucket_bits_, partition_bits_, layout_);
}

void StoreSet::FitLogs() {
  const Sizes sizes = GetSizes();
  const unsigned wanted = BucketBitsFor(sizes.hash_entries + sizes.sorted_entries, partition_bits_,
                                        Share(sizes), bucket_bits_);
  MutexLock lock(plan_mutex_);
  // Tables never shrink again: an index at the border would change back and forth.
  if (wanted <= wanted_bucket_bits_) return;
  wanted_bucket_bits_ = wanted;
  plan_ = PlanMemory(memory_limit_, options_, wanted, partition_bits_, layout_);
}

IndexSizes StoreSet::SizesForPolicy(const Sizes& sizes) const {
  return {.entries = sizes.hash_entries + sizes.sorted_entries,
          .page_index_bytes = sizes.bounds_bytes,
          .stores = sizes.stores,
          .hash_stores =
              static_cast<double>(sizes.hash_stores) / static_cast<double>(partitions_.size())};
}

double StoreSet::Share(const Sizes& sizes) const {
  return HashStoreShare(options_, layout_, memory_plan(), SizesForPolicy(sizes));
}

bool StoreSet::WantsSortedFilters(const Sizes& sizes) const {
  return HasRoomForSortedFilters(options_, layout_, memory_plan(), SizesForPolicy(sizes));
}

double StoreSet::RunsPerPartition(const Sizes& sizes) const {
  const auto partitions = static_cast<double>(partitions_.size());
  const auto run = static_cast<double>(kBucketWays << memory_plan().bucket_bits);
  const auto entries = static_cast<double>(sizes.hash_entries + sizes.sorted_entries);
  return std::max(static_cast<double>(sizes.hash_stores), Share(sizes) * entries / run) /
         partitions;
}

MemoryPlan StoreSet::memory_plan() const {
  MutexLock lock(plan_mutex_);
  return plan_;
}

bool StoreSet::HasRoomFor(uint64_t bytes) const {
  const uint64_t limit = memory_plan().index_bytes;
  return limit == kNoMemoryLimit || GetSizes().resident_bytes + bytes <= limit;
}

void StoreSet::Swap(uint32_t p, const ConvertedStore* from,
                    std::shared_ptr<const ConvertedStore> to) {
  Partition& partition = partitions_[p];
  WriterLock lock(partition.mutex);
  auto version = std::make_shared<PartitionVersion>(*partition.version);
  for (auto& store : version->hashes) {
    if (store.get() != from) continue;
    store = std::move(to);
    partition.Install(std::move(version));
    return;
  }
}

void StoreSet::Swap(uint32_t p, const SortedStore* from, std::shared_ptr<const SortedStore> to) {
  Partition& partition = partitions_[p];
  WriterLock lock(partition.mutex);
  if (partition.version->sorted.get() != from) return;
  auto version = std::make_shared<PartitionVersion>(*partition.version);
  version->sorted = std::move(to);
  partition.Install(std::move(version));
}

// --- Stores ---

void StoreSet::ResizeEmptyLog(uint32_t p) {
  Partition& partition = partitions_[p];
  const unsigned bucket_bits = memory_plan().bucket_bits;
  WriterLock lock(partition.mutex);
  partition.active = partition.active->EmptyWith(bucket_bits);
}

Status StoreSet::BeginLog(uint32_t p) {
  Partition& partition = partitions_[p];
  const StoreFileId file{StoreKind::kLog, p, NewId()};
  SILTFS_ASSIGN_OR_RETURN(auto created, CreateStoreFile(env_, options_.directory, file));
  const unsigned bucket_bits = memory_plan().bucket_bits;
  frozen_logs_.fetch_add(1, std::memory_order_relaxed);
  WriterLock lock(partition.mutex);
  const LogStore::Config config{.partition = p,
                                .id = file.id,
                                .first_page = partition.active->end_page(),
                                .bucket_bits = bucket_bits,
                                .name_hash = name_hash_,
                                .layout = layout_};
  auto version = std::make_shared<PartitionVersion>(*partition.version);
  version->logs.push_back(std::move(partition.active));
  partition.Install(std::move(version));
  partition.active = std::make_shared<LogStore>(config, std::move(created));
  return Status::Ok();
}

Status StoreSet::FoldManifest() {
  MutexLock lock(manifest_mutex_);
  const uint64_t before = manifest_log_->bytes_written();
  Status folded = manifest_log_->Fold(manifest_);
  CountManifest(before);
  if (!folded.Is(StatusCode::kNoSpace)) return folded;
  folded.IgnoreError("the edits are durable, too");
  return Status::Ok();
}

ManifestEdit StoreSet::BeginEdit() const {
  ManifestEdit edit = EditOf(manifest_);
  edit.next_id = next_id_;
  return edit;
}

Status StoreSet::Record(const ManifestEdit& edit) {
  const uint64_t before = manifest_log_->bytes_written();
  SILTFS_RETURN_IF_ERROR(manifest_log_->Record(edit, manifest_));
  CountManifest(before);
  return Status::Ok();
}

void StoreSet::CountManifest(uint64_t before) {
  const uint64_t written = manifest_log_->bytes_written() - before;
  CountWritten(written);
  Count(manifest_bytes_, written);
}

Status StoreSet::RemoveReplaced() {
  while (!replaced_.empty()) {
    const Status removed = RemoveStoreFile(env_, options_.directory, replaced_.back());
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    replaced_.pop_back();
  }
  return Status::Ok();
}

void StoreSet::ReplaceSortedStore(uint32_t p, uint64_t id) {
  replaced_.push_back({StoreKind::kSorted, p, id});
  replaced_.push_back({StoreKind::kFilter, p, id});
}

void StoreSet::RemoveUnlisted() {
  auto there = ReadStoreManifest(env_, options_.directory);
  if (!there.ok() || !there->has_value()) return;
  // Ignore next_id and generation. An opening may use ids without writing a manifest, so the
  // manifest in memory may have a greater next_id than the one on disk. A base that failed may be
  // on the disk; it has another generation, but perhaps the same stores.
  (*there)->next_id = manifest_.next_id;
  (*there)->generation = manifest_.generation;
  if (**there != manifest_) return;
  RemoveReplaced().IgnoreError("the next manifest that is written removes them");
}

Status StoreSet::InstallHashStores(std::span<const Conversion> conversions) {
  std::vector<std::shared_ptr<const ConvertedStore>> stores;
  uint64_t filter_bytes = 0;
  for (const Conversion& conversion : conversions) {
    SILTFS_ASSIGN_OR_RETURN(
        auto store,
        OpenConverted(env_, options_.directory, conversion.hash_file, partition_bits_, layout_));
    if (HasRoomFor(filter_bytes + store->filter_bytes())) {
      filter_bytes += store->filter_bytes();
      auto filtered = store->WithFilter();
      if (filtered.ok()) store = std::move(*filtered);
      filtered.status().IgnoreError("it is loaded later or left out");
    }
    CountWritten(store->file().size());
    stores.push_back(std::move(store));
  }
  MutexLock lock(manifest_mutex_);
  ManifestEdit edit = BeginEdit();
  uint64_t damaged_pages = 0;
  for (const Conversion& conversion : conversions) {
    PartitionEdit& change = ChangeOf(conversion.hash_file.partition, manifest_, edit);
    change.first_log_id = conversion.log->id() + 1;
    change.first_page = conversion.log->end_page();
    // Durable pages of later logs, which follow first_page, stay recorded as durable.
    if (static_cast<int32_t>(change.durable_page - change.first_page) < 0) {
      change.durable_page = change.first_page;
    }
    change.complete_sequence =
        std::max(change.complete_sequence, conversion.log->complete_sequence());
    change.new_hash_ids.push_back(conversion.hash_file.id);
    damaged_pages += conversion.damaged_pages;
  }
  edit.entries_lost = edit.entries_lost || damaged_pages > 0;
  Status written = Record(edit);
  if (!written.ok()) {
    for (const Conversion& conversion : conversions) replaced_.push_back(conversion.hash_file);
    RemoveUnlisted();
    return written;
  }
  CountDamage(damaged_pages);
  for (size_t i = 0; i < conversions.size(); ++i) {
    Partition& partition = partitions_[conversions[i].hash_file.partition];
    replaced_.push_back(conversions[i].log->file_id());
    WriterLock version_lock(partition.mutex);
    auto version = std::make_shared<PartitionVersion>(*partition.version);
    version->logs.erase(version->logs.begin());
    version->hashes.push_back(std::move(stores[i]));
    partition.Install(std::move(version));
    partition.grown = true;
  }
  frozen_logs_.fetch_sub(conversions.size(), std::memory_order_relaxed);
  return RemoveReplaced();
}

void StoreSet::Discard(std::span<const Conversion> conversions) {
  for (const Conversion& conversion : conversions) {
    const Status removed = RemoveStoreFile(env_, options_.directory, conversion.hash_file);
    removed.IgnoreError("no manifest lists it, so the next opening removes it");
  }
}

Status StoreSet::InstallSortedStore(const Merge& merge) {
  std::shared_ptr<const SortedStore> sorted;
  if (merge.sorted_id != 0) {
    const StoreFileId file{StoreKind::kSorted, merge.partition, merge.sorted_id};
    SILTFS_ASSIGN_OR_RETURN(sorted, SortedStore::OpenWithoutIndex(env_, options_.directory, file,
                                                                  partition_bits_, layout_));
    if (sorted->index_kind() == PageIndexKind::kBounds || HasRoomFor(sorted->index_bytes())) {
      auto with_index = sorted->WithIndex();
      if (with_index.ok()) sorted = std::move(*with_index);
      with_index.status().IgnoreError("it is loaded later or left out");
    }
    CountWritten(sorted->flash_bytes());
  }
  MutexLock lock(manifest_mutex_);
  ManifestEdit edit = BeginEdit();
  edit.entries_lost = edit.entries_lost || merge.damaged_pages > 0;
  PartitionEdit& change = ChangeOf(merge.partition, manifest_, edit);
  const uint64_t old_sorted = change.sorted_id;
  change.merged = static_cast<uint32_t>(merge.hash_ids.size());
  change.sorted_id = merge.sorted_id;
  Status written = Record(edit);
  if (!written.ok()) {
    if (merge.sorted_id != 0) {
      ReplaceSortedStore(merge.partition, merge.sorted_id);
    }
    RemoveUnlisted();
    return written;
  }
  CountDamage(merge.damaged_pages);
  for (const uint64_t id : merge.hash_ids) {
    replaced_.push_back({StoreKind::kHash, merge.partition, id});
  }
  if (old_sorted != 0) ReplaceSortedStore(merge.partition, old_sorted);
  {
    Partition& partition = partitions_[merge.partition];
    WriterLock version_lock(partition.mutex);
    auto version = std::make_shared<PartitionVersion>(*partition.version);
    version->hashes.erase(version->hashes.begin(), version->hashes.begin() + change.merged);
    version->sorted = std::move(sorted);
    partition.Install(std::move(version));
    partition.grown = false;
  }
  FitLogs();
  return RemoveReplaced();
}

Status StoreSet::RecordDurable(uint64_t complete) {
  MutexLock lock(manifest_mutex_);
  ManifestEdit edit = BeginEdit();
  edit.complete_sequence = complete;
  for (uint32_t p = 0; p < partitions_.size(); ++p) {
    // The log's end does not move during this call, because only the calling thread writes logs.
    const uint32_t end = partitions_[p].Get().active->end_page();
    if (end != manifest_.partitions[p].durable_page) {
      ChangeOf(p, manifest_, edit).durable_page = end;
    }
  }
  if (edit.partitions.empty() && complete == manifest_.complete_sequence) return Status::Ok();
  return Record(edit);
}

StoreSet::Sizes StoreSet::GetSizes() const {
  Sizes sizes;
  uint64_t most = 0;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const PartitionSums sums = partitions_[p].Sums();
    sizes.hash_entries += sums.hash_entries;
    sizes.sorted_entries += sums.sorted_entries;
    sizes.hash_stores += sums.hash_stores;
    sizes.stores += sums.hash_stores + (sums.sorted_entries > 0 ? 1 : 0);
    sizes.bounds_bytes += sums.bounds_bytes;
    sizes.wanted_bytes += sums.wanted_bytes;
    sizes.resident_bytes += sums.resident_bytes;
    sizes.complete = sizes.complete && sums.complete;
    if (sums.hash_stores > sizes.most_stores) {
      sizes.most_stores = sums.hash_stores;
      sizes.longest = p;
    }
    const size_t unfiltered = partitions_[p].grown ? sums.unfiltered : 0;
    if (unfiltered > sizes.most_unfiltered) {
      sizes.most_unfiltered = unfiltered;
      sizes.unfiltered = p;
    }
    if (sums.hash_entries <= most) continue;
    most = sums.hash_entries;
    sizes.fullest = p;
  }
  return sizes;
}

}  // namespace siltfs
