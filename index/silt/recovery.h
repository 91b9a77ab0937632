// Opens the stores of a SILT index from its directory (section 4, "Crash Tolerance": logs are
// replayed to build the tables).
//
// Recovery has three steps, so that an index answers before all of it was read (section 4: "SILT
// can begin serving requests before it has loaded its indexes into memory"). Begin reads the
// manifest and starts to list the directory, which only logs need. RecoverPartition opens the
// stores of a partition and replays its logs; it is called when the partition is first needed.
// After all partitions are recovered, Finish repairs the files after a crash. Filters and tries are
// read later, by Residency.
//
// After a crash: the pages of a log count up to the first page that is not the partition's next
// page. They also end before a page with an entry that is unknown to its owner, unless the page is
// known to be durable. Later pages, and files that no manifest lists, are removed. A killed process
// may have written pages that are only in the kernel's memory, so the pages that were read are made
// durable before they count.
//
// After damage: if durable pages of logs are missing, the durable sequence falls to the last
// sequence that is complete without them. The index fails with kCorruption if the footer of a
// HashStore or SortedStore is damaged, or if a merge has found damaged entries. It is then rebuilt
// from the segments.
//
// A read-only recovery writes nothing, but its stores in memory are as if it had made the repairs.
//
// RecoverPartition waits for the device in several threads. If the index has no threads of its own
// (SiltIndexOptions::background), it uses one thread, and the order of device calls is fixed.
//
// Thread-safety: RecoverPartition may be called for several partitions at a time; Finish after
// those have returned.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "index/silt/entry_owner.h"
#include "index/silt/parallel_jobs.h"
#include "index/silt/partition.h"
#include "index/silt/silt_options.h"
#include "index/silt/store_manifest.h"

namespace siltfs {

struct RecoveredPartition {
  std::shared_ptr<LogStore> active;
  std::shared_ptr<const PartitionVersion> version;
};

class Recovery {
 public:
  // `env` and the owner, which may be null, must outlive it. kInvalidArgument for invalid options,
  // or an index with other slots.
  static Result<std::unique_ptr<Recovery>> Begin(Env& env, const SiltIndexOptions& options,
                                                 EntryOwner* owner = nullptr);

  uint64_t hash_secret() const { return manifest_.hash_secret; }
  unsigned bucket_bits() const { return manifest_.bucket_bits; }
  unsigned partition_bits() const { return manifest_.partition_bits; }
  const SlotLayout& layout() const { return manifest_.layout; }
  // True: entries are the truth, and the index must not continue after losing some to damage.
  bool needs_all_entries() const { return owner_ != nullptr && !options_.accept_lost_entries; }

  // Call once for each partition. LogStores get tables of `bucket_bits` if their entries fit, else
  // larger ones.
  Result<RecoveredPartition> RecoverPartition(uint32_t p, unsigned bucket_bits);

  struct Outcome {
    StoreManifest manifest;
    uint64_t durable_sequence = 0;
    uint64_t damaged_pages = 0;  // found now
    uint64_t bytes_written = 0;
  };
  // Call once, after all partitions. Changes or replaces active LogStores only within calls of
  // `change_active`; it gets a partition and a function to run while no other thread uses its
  // active LogStore.
  using Change = std::function<void(std::shared_ptr<LogStore>& active)>;
  using ChangeActive = std::function<void(uint32_t partition, const Change& change)>;
  Result<Outcome> Finish(const ChangeActive& change_active);

 private:
  Recovery(Env& env, const SiltIndexOptions& options, EntryOwner* owner)
      : env_(env), options_(options), owner_(owner) {}

  // A log that counts, and how many of its pages do.
  struct FoundLog {
    std::shared_ptr<LogStore> log;
    std::shared_ptr<File> file;
    LogStore::ReplayResult replayed;
    uint32_t durable_pages = 0;  // from its first on
  };

  void BeginListing();
  Status Find();
  // Waits until files_ is set.
  Status NeedFiles();
  std::vector<StoreFileId> LogsOf(uint32_t p) const;  // the logs that count, oldest first
  Status MakeManifest();
  Status WriteManifest();
  // Opens the i-th HashStore, or the SortedStore after the last.
  Status OpenStore(uint32_t p, size_t i, PartitionVersion& version) const;
  Status ReplayLogs(uint32_t p, unsigned bucket_bits, PartitionVersion& version);
  Result<bool> ReplayLog(const StoreFileId& file, unsigned bucket_bits, uint32_t first_page);
  LogStore::Config ConfigOf(const StoreFileId& file, uint32_t first_page,
                            unsigned bucket_bits) const;
  Status FinishLog(const FoundLog& found);
  Status CutTail(File& file, uint64_t end);
  Status CreateLogs(const ChangeActive& change_active);
  Status RemoveOrphans();
  Status LowerClaims(const ChangeActive& change_active);
  Status WriteClaim(uint32_t p, uint64_t complete, const ChangeActive& change_active);

  Env& env_;
  const SiltIndexOptions options_;
  EntryOwner* const owner_;
  StoreManifest manifest_;
  uint64_t bytes_written_ = 0;

  std::vector<StoreFileId> files_;  // in order; set by the listing, and read after NeedFiles only
  // State of a partition. Until Finish, only the thread that recovers the partition accesses its
  // state or its record in the manifest.
  struct State {
    std::vector<FoundLog> found;
    std::shared_ptr<LogStore> active;
    uint64_t log_claim = 0;  // sequence up to which it claims to have all entries, by its last page
    uint64_t durable_sequence = UINT64_MAX;
    uint64_t damaged_pages = 0;
  };
  std::vector<State> states_;
  // Over all partitions, in Finish.
  uint64_t durable_sequence_ = UINT64_MAX;
  uint64_t damaged_pages_ = 0;

  Mutex files_mutex_;  // nothing else is taken under it
  std::unique_ptr<ParallelJobs> listing_ SILTFS_GUARDED_BY(files_mutex_);  // ends before the rest
};

}  // namespace siltfs
