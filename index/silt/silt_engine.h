// The engine of a SILT index (silt_index.h). It keeps entries, with the further bytes of their
// slots, in partitions of LogStores, HashStores and a SortedStore. The chunk index and the
// key-value store are built on it.
//
// Thread-safety: Get, ForEach, Verify, stats and durable_sequence may be called from any thread at
// any time. The other calls write, and must be made one at a time. Ownership: `env` and the owner
// must outlive the engine. Errors: silt_index.h. Durability: chunk_index.h; `complete` is the
// sequence up to which everything has been put, and never decreases. If there is an owner, the
// engine makes entries durable only after the owner has made the data of these entries durable.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "index/flash/reader_pool.h"
#include "index/silt/entry_owner.h"
#include "index/silt/lookup.h"
#include "index/silt/silt_maintenance.h"
#include "index/silt/silt_options.h"
#include "index/silt/store_set.h"

namespace siltfs {

class SiltEngine {
 public:
  // `owner` may be null. Unless options.serve_early is set, Open returns only when the index is
  // open (WaitUntilOpen).
  static Result<std::unique_ptr<SiltEngine>> Open(Env& env, const SiltIndexOptions& options,
                                                  EntryOwner* owner);

  const SlotLayout& layout() const { return stores_.layout(); }

  // --- Reading ---

  // Calls found(i, entry) with the entry of names[i] if it has one, in any order, from the calling
  // thread. After an error the names that could not be looked up are left out. If a damaged page of
  // a log may have held a name, Get fails with kCorruption, but only if there is an owner and
  // options.accept_lost_entries is not set.
  using Found = std::function<void(size_t, const SlotEntry&)>;
  Status Get(std::span<const ChunkName> names, const Found& found);
  // Visits the newest entry of each key, except tombstones, in the order of keys. If pages were
  // damaged, visits all other entries, and then fails with kCorruption under the same condition as
  // Get. Pins one partition at a time.
  using Visit = std::function<Status(const OrderKey&, const SlotEntry&)>;
  Status ForEach(const Visit& visit);
  uint64_t OrderOf(const ChunkName& name) const { return stores_.name_hash().Of(name); }
  Status Verify(const std::function<void(const IndexFinding&)>& report);
  // Statistics without `lookups` and `entry_bytes_put`: the callers count these.
  IndexStats stats() const;
  uint64_t durable_sequence() const;

  // --- Writing ---

  Status WaitUntilOpen();
  // Insert entries one by one: call BeginPut, then Enter for each entry, then EndPut with their
  // number. If one of these calls fails, the rest of the sequence must not be called.
  Status BeginPut(uint64_t complete);
  Status Enter(const SlotEntry& entry);
  Status EndPut(size_t entries);
  Status Delete(const ChunkName& name);
  Status Flush(uint64_t complete);
  // Rewrites a partition without the entries of gone segments; returns whether there is another
  // partition.
  Result<bool> DropGone(size_t partition, uint64_t complete);
  Status SetMemoryLimit(uint64_t bytes);
  Status Close(uint64_t complete);

  // From any thread. Merges that begin from now on leave out entries of segments that are gone.
  void SetGone(std::function<bool(SegmentId)> gone) { maintenance_.SetGone(std::move(gone)); }

 private:
  class GetBatch;

  SiltEngine(Env& env, const SiltIndexOptions& options, EntryOwner* owner,
             std::unique_ptr<Recovery> recovery);

  OrderKey KeyOf(const ChunkName& name) const;
  Status FinishForPut(Lookup& lookup);
  Result<std::optional<LogStore::Resident>> FindInActive(Partition& partition, const OrderKey& key);
  bool Append(Partition& partition, const SlotEntry& entry, uint64_t hash,
              const std::optional<LogStore::Resident>& old);
  Status MakeRoom(uint32_t p);
  bool EndsEarly(uint32_t p, const LogStore& active) const;
  Status WriteOut(uint32_t p);
  Status Freeze(uint32_t p);
  void SealOpenPage(uint32_t p);
  Status MakeDurable();
  Status MakeOwnerDurable();
  Status SyncLogs();
  Status CheckWriting();
  Status Stop(Status why);
  Status StopUnlessNoSpace(Status status);
  LogStore& Active(uint32_t p);
  Status ShrinkLogs();
  Status FreezeLargeLogs();

  const SiltIndexOptions options_;
  EntryOwner* const owner_;

  // Used only by the writing calls, which are serialised.
  uint64_t complete_ = 0;  // sequence up to which everything has been put
  uint64_t since_flush_ = 0;
  bool open_ = false;            // all partitions were recovered
  uint32_t max_log_pages_ = 0;   // of the memory plan
  bool logs_fit_ = false;        // active stores match the memory plan
  std::set<uint64_t> unsynced_;  // ids of logs with pages that were written but not synced
  Status stopped_;               // why writing has ended permanently

  std::atomic<uint64_t> durable_{0};  // the sequence that flushes since the opening made durable
  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> flash_pages_read_{0};
  std::atomic<uint64_t> put_flash_reads_{0};

  mutable StoreSet stores_;          // mutable: a const call may recover partitions
  mutable Maintenance maintenance_;  // destroyed before the stores
  ReaderPool readers_;               // its depth is that of the memory plan
};

}  // namespace siltfs
