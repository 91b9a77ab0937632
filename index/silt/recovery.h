// Opens the stores of a SILT index from its directory (section 4, "Crash Tolerance": logs are
// replayed to build the tables).
//
// Recovery has three steps, so that an index answers before all of it was read (section 4: "SILT
// can begin serving requests before it has loaded its indexes into memory"). Begin reads the
// manifest and starts to list the directory; only the logs need the list. RecoverPartition opens
// the stores of a partition and replays its logs; it is called when the partition is first needed.
// After all partitions are recovered, Finish repairs the files after a crash. Filters and tries are
// read later, by Residency.
//
// After a crash, recovery uses the pages of a log up to the first page that is not the partition's
// next page. The log also ends before a page with an entry for which EntryOwner::Holds returns
// false, unless the page is known to be durable. Later pages, logs that are not used, and stores
// that the manifest does not list are removed. A killed process may have written pages that are
// only in the kernel's memory. So Finish makes all used pages durable.
//
// After damage: if durable pages of a log are missing, the durable sequence falls to the last
// sequence up to which the remaining pages have all entries. Recovery fails with kCorruption if the
// footer of a HashStore or SortedStore is damaged, or if a merge has found damaged entries. The
// index is then rebuilt from the segments.
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
#include <optional>
#include <vector>

#include "index/flash/parallel_jobs.h"
#include "index/silt/entry_owner.h"
#include "index/silt/manifest_log.h"
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
  // Begins the recovery of options.directory. `env` and `owner` must outlive the recovery; `owner`
  // may be null. Returns kInvalidArgument for invalid options, or if the index has another slot
  // size.
  static Result<std::unique_ptr<Recovery>> Begin(Env& env, const SiltIndexOptions& options,
                                                 EntryOwner* owner = nullptr);

  const NameHash& name_hash() const { return manifest_.name_hash; }
  unsigned bucket_bits() const { return manifest_.bucket_bits; }
  unsigned partition_bits() const { return manifest_.partition_bits; }
  const SlotLayout& layout() const { return manifest_.layout; }
  // True if entries are not hints (entry_owner.h), and the index must not continue if damage has
  // destroyed some.
  bool needs_all_entries() const { return owner_ != nullptr && !options_.accept_lost_entries; }

  // Opens a partition's stores. Call once for each partition. LogStores get tables of `bucket_bits`
  // if their entries fit, else larger ones.
  Result<RecoveredPartition> RecoverPartition(uint32_t p, unsigned bucket_bits);

  struct Outcome {
    StoreManifest manifest;
    std::unique_ptr<ManifestLog> manifest_log;  // finished, unless the recovery is read-only
    uint64_t durable_sequence = 0;
    uint64_t damaged_pages = 0;  // found by this recovery
    uint64_t bytes_written = 0;
  };
  // Repairs the files. Call once, after all partitions are recovered. Finish changes or replaces
  // active LogStores only within calls of `change_active`. That function gets a partition and a
  // function to run while no other thread uses the partition's active LogStore.
  using Change = std::function<void(std::shared_ptr<LogStore>& active)>;
  using ChangeActive = std::function<void(uint32_t partition, const Change& change)>;
  Result<Outcome> Finish(const ChangeActive& change_active);

 private:
  Recovery(Env& env, const SiltIndexOptions& options, EntryOwner* owner)
      : env_(env),
        options_(options),
        owner_(owner),
        manifest_log_(std::make_unique<ManifestLog>(env, options.directory)) {}

  // A log that is used, and how many of its pages are used.
  struct FoundLog {
    std::shared_ptr<LogStore> log;
    std::shared_ptr<File> file;
    LogStore::ReplayResult replayed;
    uint32_t durable_pages = 0;  // number of durable pages, from the log's first page on
  };

  void BeginListing();
  Status Find();
  // Waits until files_ is set.
  Status NeedFiles();
  // The logs of a partition that were not converted yet, oldest first.
  std::vector<StoreFileId> LogsOf(uint32_t p) const;
  Status MakeManifest();
  // Opens the i-th HashStore or, if i is the number of HashStores, the SortedStore.
  Status OpenStore(uint32_t p, size_t i, PartitionVersion& version) const;
  Status ReplayLogs(uint32_t p, unsigned bucket_bits, PartitionVersion& version);
  Result<bool> ReplayLog(const StoreFileId& file, unsigned bucket_bits, uint32_t first_page);
  LogStore::Config ConfigOf(const StoreFileId& file, uint32_t first_page,
                            unsigned bucket_bits) const;
  Status FinishLog(const FoundLog& found);
  Status CreateLogs(const ChangeActive& change_active);
  Status RemoveOrphans();
  Status LowerClaims(const ChangeActive& change_active);
  Status WriteClaim(uint32_t p, uint64_t complete, const ChangeActive& change_active);

  Env& env_;
  const SiltIndexOptions options_;
  EntryOwner* const owner_;
  std::unique_ptr<ManifestLog> manifest_log_;
  StoreManifest manifest_;
  uint64_t bytes_written_ = 0;

  std::vector<StoreFileId> files_;  // in order; set by the listing, and read after NeedFiles only
  // State of a partition. Until Finish, only the thread that recovers the partition accesses its
  // state, and the manifest stays as it was read.
  struct State {
    std::vector<FoundLog> found;
    std::shared_ptr<LogStore> active;
    uint64_t log_claim = 0;  // sequence up to which the last log page claims to have all entries
    uint64_t durable_sequence = UINT64_MAX;
    uint64_t damaged_pages = 0;
    std::optional<uint32_t> durable_page;  // where durable pages end now, if some are missing
  };
  std::vector<State> states_;
  // The minimum over all partitions, computed in Finish.
  uint64_t durable_sequence_ = UINT64_MAX;
  uint64_t damaged_pages_ = 0;

  Mutex files_mutex_;  // only the mutex of listing_ is taken under it
  std::unique_ptr<ParallelJobs> listing_ SILTFS_GUARDED_BY(files_mutex_);  // destroyed first
};

}  // namespace siltfs
