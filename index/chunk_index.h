// The chunk index: name -> location, for as many chunks as the store has. One interface, one folder
// per engine.
//
// What it promises. The index is a cache of a truth that lives in the segments: an entry is a hint
// that its user confirms in the segment, and a lost or stale entry costs space or a read, never
// data. So nothing here is synced on the commit path; an engine instead says up to which block
// sequence number its entries are durable, and after a crash the store puts again what came later.
//
// Sequences. The store numbers its blocks 1, 2, 3...; Put calls come with sequences that never
// decrease, several may carry the same one, and none may carry one that is durable already (a store
// that lost a torn block must therefore not give its number, if the index has seen it, to another:
// number on from the greater of its own and durable_sequence()). As more may always come under the
// sequence put last, Flush leaves it out of durable_sequence(); the next sequence (also of a Put
// without entries) and Close end it. After opening, the store puts the blocks above
// durable_sequence() again, before anything newer.
//
// Thread-safety: every call may come from any thread. Put, Delete, Flush and Close wait for one
// another; lookups wait for nobody's device. Ownership: names, entries and results belong to the
// caller. Units: bytes, counts. Errors: kIoError and kNoSpace from the device; kCorruption where an
// engine's own files are too damaged to open; kInvalidArgument for a caller's mistake; kReadOnly.
// After a failed Put or Flush the index stays readable, each of the Put's entries is in or not, and
// no sequence from that of the Put on becomes durable until the index is opened again; or, where it
// was kNoSpace, until PutAgain. A page found damaged is counted and its entries are missing, when
// that is seen; when it is seen while opening, durable_sequence() goes down to what is really
// there. A lookup need not see it, and may then answer wrongly (an entry is a hint); Verify does. A
// lookup of a name that was never put is not an error. When not to use it: for anything whose loss
// would matter.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/base/chunk_name.h"
#include "store/base/location.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

// How much memory an index may use: as much as it takes.
inline constexpr uint64_t kNoMemoryLimit = UINT64_MAX;

struct IndexEntry {
  ChunkName name;
  Location location;
};

// One of an engine's component stores, for `siltfs stat` and `siltfs index stat`.
struct IndexComponentStats {
  std::string kind;        // "map", "log_store", ...
  uint32_t partition = 0;  // of engines that have them
  uint64_t id = 0;         // within the index
  uint64_t entries = 0;
  uint64_t flash_bytes = 0;
  uint64_t memory_bytes = 0;
  double occupancy = 0;  // of its hash table, 0 to 1; 0 where it has none
  // Since the index was opened.
  uint64_t probes = 0;  // lookups that asked this store
  uint64_t flash_reads = 0;
  uint64_t false_positives = 0;  // reads that found another name than the one looked for
  uint64_t flash_bytes_written = 0;

  // Of the probes of names that are not there, how many were answered with a read; 0 to 1.
  double FalsePositiveRate() const;
};

// What Verify() found wrong.
struct IndexFinding {
  std::string code;  // stable, for machines: "page-checksum", "entry-order", ...
  std::string path;
  std::optional<uint64_t> offset;  // bytes
  std::string text;                // one sentence
};

struct IndexStats {
  std::string engine;
  uint64_t entries = 0;  // an upper bound where a name put twice is not noticed at once
  uint64_t memory_bytes = 0;
  uint64_t flash_bytes = 0;
  // Since the index was opened.
  uint64_t lookups = 0;          // names asked for
  uint64_t flash_reads = 0;      // for lookups
  uint64_t put_flash_reads = 0;  // to tell whether a name that is put is there already
  uint64_t entry_bytes_put = 0;  // 32 a put entry or deletion
  uint64_t flash_bytes_written = 0;
  uint64_t damaged_pages = 0;  // whose entries were dropped, while opening or since
  // Of what only spares reads, found damaged while opening or since, and done without.
  uint64_t damaged_filters = 0;
  uint64_t conversions = 0;  // of a component store into one of another kind
  uint64_t merges = 0;
  uint64_t merge_backlog = 0;  // component stores waiting for their conversion
  uint64_t load_backlog = 0;   // filters and the like that are to be read into memory
  std::vector<IndexComponentStats> stores;

  double ReadAmplification() const;   // flash reads a lookup; 0 before the first
  double WriteAmplification() const;  // bytes written a byte put; 0 before the first
};

class ChunkIndex {
 public:
  virtual ~ChunkIndex() = default;

  // Looks all `names` up at once; results[i] belongs to names[i], empty when absent. results.size()
  // == names.size(). After an error the results of the names that could not be told are empty, the
  // others are right.
  Status Get(std::span<const ChunkName> names, std::span<std::optional<Location>> results);
  Result<std::optional<Location>> Get(const ChunkName& name);

  // Enters or replaces all entries; visible to every Get that starts after the return. `sequence`
  // is that of the block the entries point into, or a later one. Locations must name a segment.
  // Blocks while the engine must catch up (bounded memory).
  Status Put(std::span<const IndexEntry> entries, uint64_t sequence);
  // After a Put that failed with kNoSpace, and before any other: the same entries with the same
  // sequence. Once it succeeds nothing is missing. Without entries it gives up those that no block
  // misses.
  Status PutAgain(std::span<const IndexEntry> entries, uint64_t sequence);

  // Durable after the next Flush or Close. Of a name that is not there: nothing happens.
  Status Delete(const ChunkName& name);

  // Makes everything put and deleted so far durable.
  Status Flush();

  // Lookups may be answered before an engine has read all it needs for the other calls, which wait
  // for that. Returns when it has; kCorruption where the engine's own files are too damaged.
  Status WaitUntilOpen();

  // How much memory the engine may use from now on; kNoMemoryLimit: as much as it takes. What is
  // more than that is given up before the call returns, and answers then take more reads; when the
  // limit rises it is read again from flash behind the calls. There is a least amount that an
  // engine does with, even at a limit of 0.
  Status SetMemoryLimit(uint64_t bytes);

  // Every entry put with a sequence up to this one survives a power loss. 0 in a new index. Never
  // decreases.
  uint64_t durable_sequence() const;

  // Calls `visit` once for each live entry, in no order, as of some moment during the call; stops
  // at its first failure. `visit` may call the index.
  Status ForEach(const std::function<Status(const IndexEntry&)>& visit);

  // Where an entry of this name stands in ForEachInOrder's order. Different names mostly have
  // different places; constant as long as the index is open.
  uint64_t OrderOf(const ChunkName& name) const { return OrderOfImpl(name); }

  // ForEach in rising order of OrderOf: each live entry once, as of some moment during the call.
  // Takes no more memory than ForEach, and pins one part of the engine's files at a time.
  // kCorruption if they have entries in another order.
  Status ForEachInOrder(const std::function<Status(uint64_t order, const IndexEntry&)>& visit);

  // Says which segments are gone for good: an entry that leads into one is a miss to whoever looks
  // it up, so engines that rewrite what they have leave it out when they come to it, and no other.
  // When that is, if ever, is the engine's choice. `gone` is called from the engine's own threads,
  // perhaps for every entry there is, and must call nothing of the index; one that was replaced may
  // be called until the index is closed or destroyed. Empty at first, and may be.
  void SetGone(std::function<bool(SegmentId)> gone) { SetGoneImpl(std::move(gone)); }

  // Leaves out, now, what leads into segments that are gone (SetGone), where the engine keeps such
  // entries until it rewrites what holds them: it rewrites all, one part after the other. Other
  // calls go on between two parts; `pace`, which may be empty, is called there, and its failure ends
  // the call. Takes as much room on the device as one part does twice. What has been done when it
  // fails stays done; after kNoSpace it may be called again. Changes no answer but to names whose
  // entries lead into gone segments, and nothing of what is durable.
  Status DropGone(const std::function<Status()>& pace = {});

  // Reads everything and checks order, ranks, filters and counts; calls `report` with each thing
  // that is wrong. Fails only where it can't go on. Slow; other calls go on meanwhile.
  Status Verify(const std::function<void(const IndexFinding&)>& report);

  IndexStats stats() const;

  // Flushes; no call but stats() may follow. Without it, destruction is like a crash.
  Status Close();

 protected:
  explicit ChunkIndex(bool read_only) : read_only_(read_only) {}
  ChunkIndex() : ChunkIndex(false) {}

 private:
  // What an engine provides. Arguments have been checked, results are cleared. PutImpl, DeleteImpl,
  // FlushImpl and CloseImpl are called one at a time, and never when read-only; the others come at
  // any time. `complete` is the sequence up to which everything has been put, before this call for
  // PutImpl: what DurableSequenceImpl may say once all that was put before the call is durable. It
  // never decreases.
  virtual Status GetImpl(std::span<const ChunkName> names,
                         std::span<std::optional<Location>> results) = 0;
  virtual Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) = 0;
  virtual Status DeleteImpl(const ChunkName& name) = 0;
  virtual Status FlushImpl(uint64_t complete) = 0;
  // These are called one at a time, too, also when read-only; WaitUntilOpenImpl before each of the
  // writing calls.
  virtual Status WaitUntilOpenImpl() { return Status::Ok(); }
  virtual Status SetMemoryLimitImpl(uint64_t /*bytes*/) { return Status::Ok(); }
  virtual uint64_t DurableSequenceImpl() const = 0;
  virtual Status ForEachImpl(const std::function<Status(const IndexEntry&)>& visit) = 0;
  virtual uint64_t OrderOfImpl(const ChunkName& name) const = 0;
  virtual Status ForEachInOrderImpl(
      const std::function<Status(uint64_t order, const IndexEntry&)>& visit) = 0;
  virtual void SetGoneImpl(std::function<bool(SegmentId)> /*gone*/) {}
  // Does one of the parts, which count from 0, and says whether there is another; called like
  // FlushImpl.
  virtual Result<bool> DropGoneImpl(size_t /*part*/, uint64_t /*complete*/) { return false; }
  virtual Status VerifyImpl(const std::function<void(const IndexFinding&)>& report) = 0;
  // Without lookups and entry_bytes_put.
  virtual IndexStats StatsImpl() const = 0;
  virtual Status CloseImpl(uint64_t complete) = 0;

  Status CheckOpen() const;
  Status CheckWritable() const;
  Status PutLocked(std::span<const IndexEntry> entries, uint64_t sequence)
      SILTFS_REQUIRES(write_mutex_);
  // Of what was put up to `sequence`, what went in without a failure.
  uint64_t CompleteUpTo(uint64_t sequence) const SILTFS_REQUIRES(write_mutex_);

  const bool read_only_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> lookups_{0};
  std::atomic<uint64_t> entry_bytes_put_{0};

  Mutex write_mutex_;  // taken before any lock of an engine
  uint64_t last_sequence_ SILTFS_GUARDED_BY(write_mutex_) =
      0;  // of a Put since opening; 0: none yet
  uint64_t failed_sequence_ SILTFS_GUARDED_BY(write_mutex_) =
      0;                                                  // the first of a Put that failed; 0: none
  bool no_room_ SILTFS_GUARDED_BY(write_mutex_) = false;  // that is why, and no other has failed
};

}  // namespace siltfs
