// The stores of an open SILT index, and the manifest that lists them: the only place where stores
// are replaced. A new store is durable before the manifest names it; the manifest is durable before
// the replaced stores are removed. Readers keep old stores alive as long as they hold a version
// with them.
//
// Thread-safety: any, except for the active LogStores (partition.h). Lock order: finish_mutex_,
// recovery_mutex_, manifest_mutex_, then a partition's.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "index/silt/memory_plan.h"
#include "index/silt/merge_policy.h"
#include "index/silt/partition.h"
#include "index/silt/recovery.h"

namespace siltfs {

class StoreSet {
 public:
  StoreSet(Env& env, const SiltIndexOptions& options, std::unique_ptr<Recovery> recovery);

  // --- Opening (recovery.h) ---

  // Returns OK once the partition is recovered; the first call recovers it. After an error every
  // call returns the same error.
  Status NeedPartition(uint32_t p);
  // Returns OK once all partitions are recovered and the files are repaired after a crash; the
  // first call does both. Every call that writes or reports durability needs it first. After an
  // error every call returns the same error: the device's contents after a failed write are unknown
  // until the index is opened again.
  Status Recover();
  bool recovered() const { return recovered_.load(std::memory_order_acquire); }
  uint64_t durable_sequence_found() const { return durable_sequence_found_; }  // once recovered

  // --- Memory (memory_plan.h) ---

  // Sets the plan only; Residency drops and loads filters and tries.
  void SetMemoryLimit(uint64_t bytes);
  MemoryPlan memory_plan() const;
  // Replaces a store by the same one with or without its filter or trie, if it is still installed.
  void Swap(uint32_t p, const ConvertedStore* from, std::shared_ptr<const ConvertedStore> to);
  void Swap(uint32_t p, const SortedStore* from, std::shared_ptr<const SortedStore> to);

  // --- Stores ---

  Env& env() const { return env_; }
  const SiltIndexOptions& options() const { return options_; }
  const NameHash& name_hash() const { return name_hash_; }
  unsigned partition_bits() const { return partition_bits_; }
  const SlotLayout& layout() const { return layout_; }
  // True if entries are not hints (entry_owner.h), and the index must not continue if damage has
  // destroyed some.
  bool needs_all_entries() const { return needs_all_entries_; }

  size_t partition_count() const { return partitions_.size(); }
  Partition& partition(size_t i) { return partitions_[i]; }
  const Partition& partition(size_t i) const { return partitions_[i]; }
  Partition& PartitionFor(uint64_t hash) { return partitions_[PartitionOf(hash, partition_bits_)]; }
  uint64_t NewId() { return next_id_.fetch_add(1); }

  // Freezes a partition's active LogStore, which must be sealed and written out, and begins
  // another.
  Status BeginLog(uint32_t partition);
  // Gives an active LogStore that never held an entry a table of the plan's size.
  void ResizeEmptyLog(uint32_t partition);
  size_t frozen_logs() const { return frozen_logs_.load(std::memory_order_relaxed); }

  struct Conversion {
    std::shared_ptr<const LogStore> log;  // the oldest frozen one of its partition
    StoreFileId hash_file;                // written and synced
    uint64_t damaged_pages = 0;
  };
  // Replaces LogStores by the HashStores made from them. After an error the HashStores are not
  // used; they are removed once it is certain that no manifest names them.
  Status InstallHashStores(std::span<const Conversion> conversions);

  struct Merge {
    uint32_t partition = 0;
    std::vector<uint64_t> hash_ids;  // the merged HashStores: the oldest of the partition
    uint64_t sorted_id = 0;          // written and synced; 0: no entries remained
    uint64_t damaged_pages = 0;
  };
  // Removes the files of HashStores that are not to be installed.
  void Discard(std::span<const Conversion> conversions);
  // Replaces the old SortedStore and the merged HashStores by the new SortedStore. After an error
  // the new SortedStore is not used; it is removed once it is certain that no manifest names it.
  Status InstallSortedStore(const Merge& merge);

  // Records that all entries put with sequences up to `complete` are in synced pages, and that all
  // pages of each partition are synced.
  Status RecordDurable(uint64_t complete);

  // Called when the index is closed: the manifest needs no edits any more.
  Status FoldManifest();

  // Sums and maxima over the recovered partitions. Looks at no stores.
  struct Sizes {
    uint64_t hash_entries = 0;    // in HashStores
    uint64_t sorted_entries = 0;  // in SortedStores
    uint64_t hash_stores = 0;     // HashStores and sorted runs
    uint64_t stores = 0;          // these and SortedStores
    uint64_t bounds_bytes = 0;    // of page boundaries, which stay in memory
    uint64_t wanted_bytes = 0;    // of all filters of HashStores, boundaries and tries
    uint64_t resident_bytes = 0;  // of those in memory, and of slices
    bool complete = true;         // all of the wanted ones are in memory
    size_t fullest = 0;           // the partition with the most HashStore entries
    size_t most_stores = 0;       // HashStores of a partition
    size_t longest = 0;           // the partition that has them
    // The most HashStores without a filter in one partition. This leaves out partitions that got no
    // HashStore since the index was opened or since their last merge, whichever was later.
    size_t most_unfiltered = 0;
    size_t unfiltered = 0;  // the partition that has them
  };
  Sizes GetSizes() const;
  // The share of all entries that HashStores may hold now (merge_policy.h).
  double Share(const Sizes& sizes) const;
  // Whether merges write filters of SortedStores (merge_policy.h).
  bool WantsSortedFilters(const Sizes& sizes) const;
  // The number of sorted runs that a partition has on average, or that it will have when merges
  // leave their share in runs; the greater of the two.
  double RunsPerPartition(const Sizes& sizes) const;

  void CountWritten(uint64_t bytes) { Count(bytes_written_, bytes); }
  uint64_t bytes_written() const { return bytes_written_.load(std::memory_order_relaxed); }
  void CountDamage(uint64_t pages) { Count(damaged_pages_, pages); }
  // Filters of SortedStores; losing one loses no entry.
  void CountDamagedFilter() { Count(damaged_filters_); }
  uint64_t damaged_filters() const { return damaged_filters_.load(std::memory_order_relaxed); }
  uint64_t damaged_pages() const { return damaged_pages_.load(std::memory_order_relaxed); }
  uint64_t manifest_bytes() const { return manifest_bytes_.load(std::memory_order_relaxed); }

 private:
  IndexSizes SizesForPolicy(const Sizes& sizes) const;
  Status FinishRecovery() SILTFS_REQUIRES(finish_mutex_);
  bool HasRoomFor(uint64_t bytes) const;
  // Makes new LogStores as large as the number of entries requires.
  void FitLogs();
  // An edit of the manifest that changes nothing yet.
  ManifestEdit BeginEdit() const SILTFS_REQUIRES(manifest_mutex_);
  // Makes the edit durable and applies it to manifest_, which is unchanged after an error.
  Status Record(const ManifestEdit& edit) SILTFS_REQUIRES(manifest_mutex_);
  // Counts what manifest_log_ has written since it had written `before` bytes.
  void CountManifest(uint64_t before) SILTFS_REQUIRES(manifest_mutex_);
  Status RemoveReplaced() SILTFS_REQUIRES(manifest_mutex_);
  // Marks the store and its filter for removal.
  void ReplaceSortedStore(uint32_t p, uint64_t id) SILTFS_REQUIRES(manifest_mutex_);
  // Called after an edit could not be recorded: removes the replaced files if the previous
  // manifest is still in place. If they stayed, they would take the last space of a full disk.
  void RemoveUnlisted() SILTFS_REQUIRES(manifest_mutex_);

  Env& env_;
  const SiltIndexOptions options_;
  const NameHash name_hash_;
  const unsigned bucket_bits_;
  const unsigned partition_bits_;
  const SlotLayout layout_;
  const bool needs_all_entries_;

  std::deque<Partition> partitions_;  // never resized

  // The thread that recovers all partitions holds finish_mutex_. recovery_mutex_ is released while
  // a partition is recovered, so that a lookup waits only for its own partition.
  Mutex finish_mutex_ SILTFS_ACQUIRED_BEFORE(recovery_mutex_);
  Status recovery_failure_ SILTFS_GUARDED_BY(finish_mutex_);  // permanent
  Mutex recovery_mutex_;
  std::unique_ptr<Recovery> recovery_ SILTFS_GUARDED_BY(recovery_mutex_);  // until Recover is done
  std::set<uint32_t> recovering_ SILTFS_GUARDED_BY(recovery_mutex_);       // in progress
  // Notified after the recovery of a partition, also if it has failed.
  CondVar partition_recovered_;
  std::vector<Status> recovery_failures_ SILTFS_GUARDED_BY(recovery_mutex_);  // by partition
  std::atomic<bool> recovered_{false};
  std::atomic<uint64_t> durable_sequence_found_{0};

  mutable Mutex plan_mutex_;  // nothing else is taken under it
  MemoryPlan plan_ SILTFS_GUARDED_BY(plan_mutex_);
  uint64_t memory_limit_ SILTFS_GUARDED_BY(plan_mutex_);
  // What the plan is for; at least the value that the index was made with.
  unsigned wanted_bucket_bits_ SILTFS_GUARDED_BY(plan_mutex_);

  std::atomic<uint64_t> next_id_{0};
  std::atomic<size_t> frozen_logs_{0};
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> damaged_pages_{0};
  std::atomic<uint64_t> damaged_filters_{0};
  std::atomic<uint64_t> manifest_bytes_{0};

  Mutex manifest_mutex_;
  StoreManifest manifest_ SILTFS_GUARDED_BY(manifest_mutex_);
  std::unique_ptr<ManifestLog> manifest_log_ SILTFS_GUARDED_BY(manifest_mutex_);  // once recovered
  std::vector<StoreFileId> replaced_ SILTFS_GUARDED_BY(manifest_mutex_);          // to be removed
};

}  // namespace siltfs
