// What stands at the beginning: the stores of a SILT index as they are found in its directory
// (section 4, "Crash Tolerance": logs are replayed to build the tables).
//
// In three steps, so that an index answers before all of it was read (section 4: "SILT can begin
// serving requests before it has loaded its indexes into memory"). Begin reads the manifest, and
// has the directory listed, which only logs need. RecoverPartition opens the stores of a partition
// and replays its logs, and is called for a partition when it is first asked for. Finish, when that
// was done for all, puts right what a crash left. Filters and tries are read later still, and not
// here.
//
// What a crash leaves is put right: a log counts up to the first page that is not the next one of
// its partition, or is not known to be durable and has an entry whose owner knows nothing of it;
// what comes after it, and files that no manifest lists, are removed, and what was
// read is made durable before it counts (a process may die and its writes live on in memory). What
// damage leaves is used: where pages of logs are missing that were durable, the sequence that
// counts as durable falls to what lies before them. A HashStore or SortedStore whose footer is
// damaged makes the index kCorruption, and so do entries that a merge met damaged: that calls for
// an index made anew from the segments.
//
// Read-only, none of this is written: the stores just look like it.
//
// What waits for the device in RecoverPartition is done side by side, unless the index has no
// threads of its own (SiltIndexOptions::background): then each call is in its place.
//
// Thread-safety: RecoverPartition may be called for several partitions at a time; Finish when those
// are over.
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
  // `env` and the owner, which may be null, must outlive it. kInvalidArgument for options that make
  // no sense, or an index with other slots.
  static Result<std::unique_ptr<Recovery>> Begin(Env& env, const SiltIndexOptions& options,
                                                 EntryOwner* owner = nullptr);

  uint64_t hash_secret() const { return manifest_.hash_secret; }
  unsigned bucket_bits() const { return manifest_.bucket_bits; }
  unsigned partition_bits() const { return manifest_.partition_bits; }
  const SlotLayout& layout() const { return manifest_.layout; }
  // Whether entries are the truth, so that nothing goes on without those that damage has taken.
  bool needs_all_entries() const { return owner_ != nullptr && !options_.accept_lost_entries; }

  // Once for each partition. LogStores whose entries fit get tables of `bucket_bits`, others larger
  // ones.
  Result<RecoveredPartition> RecoverPartition(uint32_t p, unsigned bucket_bits);

  struct Outcome {
    StoreManifest manifest;
    uint64_t durable_sequence = 0;
    uint64_t damaged_pages = 0;  // found now
    uint64_t bytes_written = 0;
  };
  // Once, after all partitions. Changes active LogStores, or puts others in their place, only
  // within calls of `change_active`, which is given a partition and what to do while nobody looks
  // at its active LogStore.
  using Change = std::function<void(std::shared_ptr<LogStore>& active)>;
  using ChangeActive = std::function<void(uint32_t partition, const Change& change)>;
  Result<Outcome> Finish(const ChangeActive& change_active);

 private:
  Recovery(Env& env, const SiltIndexOptions& options, EntryOwner* owner)
      : env_(env), options_(options), owner_(owner) {}

  // A log that counts, and how much of it.
  struct FoundLog {
    std::shared_ptr<LogStore> log;
    std::shared_ptr<File> file;
    LogStore::ReplayResult replayed;
    uint32_t durable_pages = 0;  // from its first on
  };

  void BeginListing();
  Status Find();
  // Waits until files_ is there.
  Status NeedFiles();
  std::vector<StoreFileId> LogsOf(uint32_t p) const;  // that count, oldest first
  Status MakeManifest();
  Status WriteManifest();
  // Opens the i-th HashStore, or the SortedStore after the last.
  Status OpenStore(uint32_t p, size_t i, PartitionVersion& version) const;
  Status ReplayLogs(uint32_t p, unsigned bucket_bits, PartitionVersion& version);
  Result<bool> ReplayLog(const StoreFileId& file, unsigned bucket_bits, uint32_t first_page);
  LogStore::Config ConfigOf(const StoreFileId& file, uint32_t first_page,
                            unsigned bucket_bits) const;
  Status Settle(const FoundLog& found);
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
  // Of a partition; until Finish only whoever recovers it looks at its state, or at its record in
  // the manifest.
  struct State {
    std::vector<FoundLog> found;
    std::shared_ptr<LogStore> active;
    uint64_t log_claim = 0;  // up to where it has all that was put, as its last page says
    uint64_t durable_sequence = UINT64_MAX;
    uint64_t damaged_pages = 0;
  };
  std::vector<State> states_;
  // Of all partitions, in Finish.
  uint64_t durable_sequence_ = UINT64_MAX;
  uint64_t damaged_pages_ = 0;

  Mutex files_mutex_;  // nothing else is taken under it
  std::unique_ptr<ParallelJobs> listing_ SILTFS_GUARDED_BY(files_mutex_);  // ends before the rest
};

}  // namespace siltfs
