#include "index/silt/store_set.h"

#include <algorithm>

namespace siltfs {

StoreSet::StoreSet(Env& env, const SiltIndexOptions& options, RecoveredStores recovered)
    : env_(env),
      options_(options),
      hash_secret_(recovered.manifest.hash_secret),
      bucket_bits_(recovered.manifest.bucket_bits),
      partition_bits_(recovered.manifest.partition_bits),
      partitions_(recovered.partitions.size()),
      next_id_(recovered.manifest.next_id),
      bytes_written_(recovered.bytes_written),
      damaged_pages_(recovered.damaged_pages),
      manifest_(std::move(recovered.manifest)) {
  size_t frozen = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    WriterLock lock(partitions_[i].mutex);
    partitions_[i].active = std::move(recovered.partitions[i].active);
    partitions_[i].version = std::move(recovered.partitions[i].version);
    frozen += partitions_[i].version->logs.size();
  }
  frozen_logs_ = frozen;
}

Status StoreSet::BeginLog(uint32_t p) {
  Partition& partition = partitions_[p];
  const StoreFileId file{StoreKind::kLog, p, NewId()};
  SILTFS_ASSIGN_OR_RETURN(auto created, CreateStoreFile(env_, options_.directory, file));
  frozen_logs_.fetch_add(1, std::memory_order_relaxed);
  WriterLock lock(partition.mutex);
  const LogStore::Config config{.partition = p,
                                .id = file.id,
                                .first_page = partition.active->end_page(),
                                .bucket_bits = bucket_bits_,
                                .hash_secret = hash_secret_};
  auto version = std::make_shared<PartitionVersion>(*partition.version);
  version->logs.push_back(std::move(partition.active));
  partition.version = std::move(version);
  partition.active = std::make_shared<LogStore>(config, std::move(created));
  return Status::Ok();
}

Status StoreSet::WriteManifest(const StoreManifest& manifest) {
  const size_t size = EncodeStoreManifest(manifest).size();
  SILTFS_RETURN_IF_ERROR(WriteStoreManifest(env_, options_.directory, manifest));
  CountWritten(size);
  Count(manifest_bytes_, size);
  return Status::Ok();
}

Status StoreSet::RemoveReplaced() {
  while (!replaced_.empty()) {
    const Status removed = RemoveStoreFile(env_, options_.directory, replaced_.back());
    if (!removed.ok() && !removed.Is(StatusCode::kNotFound)) return removed;
    replaced_.pop_back();
  }
  return Status::Ok();
}

void StoreSet::RemoveUnlisted() {
  auto there = ReadStoreManifest(env_, options_.directory);
  if (!there.ok() || !there->has_value()) return;
  // Opening uses ids up without a new manifest.
  (*there)->next_id = manifest_.next_id;
  if (**there != manifest_) return;
  RemoveReplaced().IgnoreError("the next manifest that is written removes them");
}

Status StoreSet::InstallHashStores(std::span<const Conversion> conversions) {
  std::vector<std::shared_ptr<const HashStore>> stores;
  for (const Conversion& conversion : conversions) {
    SILTFS_ASSIGN_OR_RETURN(auto store,
                            HashStore::Open(env_, options_.directory, conversion.hash_file));
    CountWritten(store->file().size());
    stores.push_back(std::move(store));
  }
  MutexLock lock(manifest_mutex_);
  StoreManifest manifest = manifest_;
  manifest.next_id = next_id_;
  uint64_t damaged_pages = 0;
  for (const Conversion& conversion : conversions) {
    PartitionRecord& record = manifest.partitions[conversion.hash_file.partition];
    record.first_log_id = conversion.log->id() + 1;
    record.first_page = conversion.log->end_page();
    // Pages behind it that are durable remain so.
    if (static_cast<int32_t>(record.durable_page - record.first_page) < 0) {
      record.durable_page = record.first_page;
    }
    record.complete_sequence =
        std::max(record.complete_sequence, conversion.log->complete_sequence());
    record.hash_ids.push_back(conversion.hash_file.id);
    damaged_pages += conversion.damaged_pages;
  }
  manifest.entries_lost = manifest.entries_lost || damaged_pages > 0;
  Status written = WriteManifest(manifest);
  if (!written.ok()) {
    for (const Conversion& conversion : conversions) replaced_.push_back(conversion.hash_file);
    RemoveUnlisted();
    return written;
  }
  manifest_ = std::move(manifest);
  CountDamage(damaged_pages);
  for (size_t i = 0; i < conversions.size(); ++i) {
    Partition& partition = partitions_[conversions[i].hash_file.partition];
    replaced_.push_back(conversions[i].log->file_id());
    WriterLock version_lock(partition.mutex);
    auto version = std::make_shared<PartitionVersion>(*partition.version);
    version->logs.erase(version->logs.begin());
    version->hashes.push_back(std::move(stores[i]));
    partition.version = std::move(version);
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
    SILTFS_ASSIGN_OR_RETURN(sorted,
                            SortedStore::Open(env_, options_.directory, file, partition_bits_));
    CountWritten(sorted->file().size());
  }
  MutexLock lock(manifest_mutex_);
  StoreManifest manifest = manifest_;
  manifest.next_id = next_id_;
  manifest.entries_lost = manifest.entries_lost || merge.damaged_pages > 0;
  PartitionRecord& record = manifest.partitions[merge.partition];
  const auto merged = static_cast<ptrdiff_t>(merge.hash_ids.size());
  const uint64_t old_sorted = record.sorted_id;
  record.hash_ids.erase(record.hash_ids.begin(), record.hash_ids.begin() + merged);
  record.sorted_id = merge.sorted_id;
  Status written = WriteManifest(manifest);
  if (!written.ok()) {
    if (merge.sorted_id != 0) {
      replaced_.push_back({StoreKind::kSorted, merge.partition, merge.sorted_id});
    }
    RemoveUnlisted();
    return written;
  }
  manifest_ = std::move(manifest);
  CountDamage(merge.damaged_pages);
  for (const uint64_t id : merge.hash_ids) {
    replaced_.push_back({StoreKind::kHash, merge.partition, id});
  }
  if (old_sorted != 0) replaced_.push_back({StoreKind::kSorted, merge.partition, old_sorted});
  {
    Partition& partition = partitions_[merge.partition];
    WriterLock version_lock(partition.mutex);
    auto version = std::make_shared<PartitionVersion>(*partition.version);
    version->hashes.erase(version->hashes.begin(), version->hashes.begin() + merged);
    version->sorted = std::move(sorted);
    partition.version = std::move(version);
  }
  return RemoveReplaced();
}

Status StoreSet::RecordDurable(uint64_t complete) {
  MutexLock lock(manifest_mutex_);
  StoreManifest manifest = manifest_;
  manifest.complete_sequence = complete;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    // Its end can't move meanwhile: this is called where logs are written.
    manifest.partitions[p].durable_page = partitions_[p].Get().active->end_page();
  }
  if (manifest == manifest_) return Status::Ok();
  manifest.next_id = next_id_;
  SILTFS_RETURN_IF_ERROR(WriteManifest(manifest));
  manifest_ = std::move(manifest);
  return Status::Ok();
}

StoreSet::Sizes StoreSet::GetSizes() const {
  Sizes sizes;
  uint64_t most = 0;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    const auto version = partitions_[p].Get().version;
    const uint64_t entries = version->HashEntries();
    sizes.hash_entries += entries;
    sizes.sorted_entries += version->SortedEntries();
    if (version->hashes.size() > sizes.most_stores) {
      sizes.most_stores = version->hashes.size();
      sizes.longest = p;
    }
    if (entries <= most) continue;
    most = entries;
    sizes.fullest = p;
  }
  return sizes;
}

}  // namespace siltfs
