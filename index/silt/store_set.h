// The stores of an open SILT index, and the manifest that says which of them count: the one place
// where stores take each other's place. What replaces is durable before the manifest names it, the
// manifest before the replaced ones go; readers keep the old ones as long as they hold their
// version.
//
// Thread-safety: any, but for the active LogStores (partition.h). Lock order: finish_mutex_,
// recovery_mutex_, manifest_mutex_, then a partition's.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "index/silt/memory_plan.h"
#include "index/silt/partition.h"
#include "index/silt/recovery.h"

namespace siltfs {

class StoreSet {
 public:
  StoreSet(Env& env, const SiltIndexOptions& options, std::unique_ptr<Recovery> recovery);

  // --- Opening (recovery.h) ---

  // A partition is there once this has returned OK; the first call recovers it. After an error, the
  // same error.
  Status NeedPartition(uint32_t p);
  // All partitions are, and what a crash left has been put right; the first call does that. For all
  // that writes, or says what is durable. After an error, the same error: what a failed write left
  // is unknown until the index is opened again.
  Status Recover();
  bool recovered() const { return recovered_.load(std::memory_order_acquire); }
  uint64_t durable_sequence_found() const { return durable_sequence_found_; }  // once recovered

  // --- Memory (memory_plan.h) ---

  // Filters and tries are dropped and loaded by others (residency.h).
  void SetMemoryLimit(uint64_t bytes);
  MemoryPlan memory_plan() const;
  // What filters and tries take.
  uint64_t index_bytes() const;
  // Puts a store in the place of the same one with or without its filter or trie, if that is still
  // there.
  void Swap(uint32_t p, const HashStore* from, std::shared_ptr<const HashStore> to);
  void Swap(uint32_t p, const SortedStore* from, std::shared_ptr<const SortedStore> to);

  // --- Stores ---

  Env& env() const { return env_; }
  const SiltIndexOptions& options() const { return options_; }
  uint64_t hash_secret() const { return hash_secret_; }
  unsigned partition_bits() const { return partition_bits_; }
  const SlotLayout& layout() const { return layout_; }
  // Whether entries are the truth, so that nothing goes on without those that damage has taken.
  bool needs_all_entries() const { return needs_all_entries_; }

  size_t partition_count() const { return partitions_.size(); }
  Partition& partition(size_t i) { return partitions_[i]; }
  const Partition& partition(size_t i) const { return partitions_[i]; }
  Partition& PartitionFor(uint64_t hash) { return partitions_[PartitionOf(hash, partition_bits_)]; }
  uint64_t NewId() { return next_id_.fetch_add(1); }

  // Freezes the active LogStore of a partition, which must be sealed and written out, and begins
  // another.
  Status BeginLog(uint32_t partition);
  // Gives an active LogStore in which there never was anything a table of the plan's size.
  void ResizeEmptyLog(uint32_t partition);
  size_t frozen_logs() const { return frozen_logs_.load(std::memory_order_relaxed); }

  struct Conversion {
    std::shared_ptr<const LogStore> log;  // the oldest frozen one of its partition
    StoreFileId hash_file;                // written and synced
    uint64_t damaged_pages = 0;
  };
  // Puts HashStores in the place of the LogStores they were made from. After an error they do not
  // count, and are removed when it is sure that no manifest names them.
  Status InstallHashStores(std::span<const Conversion> conversions);

  struct Merge {
    uint32_t partition = 0;
    std::vector<uint64_t> hash_ids;  // the merged HashStores: the oldest of the partition
    uint64_t sorted_id = 0;          // written and synced; 0: nothing was left
    uint64_t damaged_pages = 0;
  };
  // Removes the files of HashStores that are not to be installed.
  void Discard(std::span<const Conversion> conversions);
  // Puts a SortedStore in the place of the one before and of HashStores. Errors as above.
  Status InstallSortedStore(const Merge& merge);

  // Everything put with sequences up to `complete` lies in pages that were synced: those of each
  // partition up to its end.
  Status RecordDurable(uint64_t complete);

  // Of the partitions that are there.
  struct Sizes {
    uint64_t hash_entries = 0;    // in HashStores
    uint64_t sorted_entries = 0;  // in SortedStores
    size_t fullest = 0;           // the partition with the most HashStore entries
    size_t most_stores = 0;       // HashStores of a partition
    size_t longest = 0;           // the partition that has them
    // HashStores without a filter, of a partition whose last one was made since its last merge and
    // since the index was opened.
    size_t most_unfiltered = 0;
    size_t unfiltered = 0;  // the partition that has them
  };
  Sizes GetSizes() const;

  void CountWritten(uint64_t bytes) { Count(bytes_written_, bytes); }
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }
  void CountDamage(uint64_t pages) { Count(damaged_pages_, pages); }
  // Filters of SortedStores; no entry is gone with one.
  void CountDamagedFilter() { Count(damaged_filters_); }
  uint64_t damaged_filters() const { return damaged_filters_.load(std::memory_order_relaxed); }
  uint64_t damaged_pages() const { return damaged_pages_.load(std::memory_order_relaxed); }
  uint64_t manifest_bytes() const { return manifest_bytes_.load(std::memory_order_relaxed); }

 private:
  Status FinishRecovery() SILTFS_REQUIRES(finish_mutex_);
  bool HasRoomFor(uint64_t bytes) const;
  Status WriteManifest(const StoreManifest& manifest) SILTFS_REQUIRES(manifest_mutex_);
  Status RemoveReplaced() SILTFS_REQUIRES(manifest_mutex_);
  // It and its filter are to be removed.
  void ReplaceSortedStore(uint32_t p, uint64_t id) SILTFS_REQUIRES(manifest_mutex_);
  // After a manifest could not be written: the same, if the one before is still in its place. Lest
  // stores that nobody counts take a full disk's last room.
  void RemoveUnlisted() SILTFS_REQUIRES(manifest_mutex_);

  Env& env_;
  const SiltIndexOptions options_;
  const uint64_t hash_secret_;
  const unsigned bucket_bits_;
  const unsigned partition_bits_;
  const SlotLayout layout_;
  const bool needs_all_entries_;

  std::deque<Partition> partitions_;  // as many as there are, for good

  // finish_mutex_ is held by whoever recovers all partitions. recovery_mutex_ is not while one is
  // recovered, so that a lookup waits for its own only.
  Mutex finish_mutex_ SILTFS_ACQUIRED_BEFORE(recovery_mutex_);
  Status recovery_failure_ SILTFS_GUARDED_BY(finish_mutex_);  // for good
  Mutex recovery_mutex_;
  std::unique_ptr<Recovery> recovery_ SILTFS_GUARDED_BY(recovery_mutex_);  // until Recover is done
  std::set<uint32_t> recovering_ SILTFS_GUARDED_BY(recovery_mutex_);       // under way
  CondVar partition_recovered_;                                            // or has failed
  std::vector<Status> recovery_failures_ SILTFS_GUARDED_BY(recovery_mutex_);  // by partition
  std::atomic<bool> recovered_{false};
  std::atomic<uint64_t> durable_sequence_found_{0};

  mutable Mutex plan_mutex_;  // nothing else is taken under it
  MemoryPlan plan_ SILTFS_GUARDED_BY(plan_mutex_);

  std::atomic<uint64_t> next_id_{0};
  std::atomic<size_t> frozen_logs_{0};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> damaged_pages_{0};
  std::atomic<uint64_t> damaged_filters_{0};
  std::atomic<uint64_t> manifest_bytes_{0};

  Mutex manifest_mutex_;
  StoreManifest manifest_ SILTFS_GUARDED_BY(manifest_mutex_);
  std::vector<StoreFileId> replaced_ SILTFS_GUARDED_BY(manifest_mutex_);  // to be removed
};

}  // namespace siltfs
