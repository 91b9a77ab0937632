// The chunk index maps the names of all chunks of a store to their locations. This is the
// interface; each engine has a folder of its own.
//
// Guarantees. The index is a cache; only the chunk tables in the segments are authoritative. An
// entry is a hint: the caller confirms it in the segment, by name. Two names may share an entry
// (OrderOf); a lookup of either gives the location that was put last. A lost, stale or shared entry
// costs space or a read, never data. So a commit syncs nothing of the index. An engine reports the
// block sequence number up to which its entries are durable; after a crash the store puts the
// entries of later blocks again.
//
// Sequences. The store numbers its blocks 1, 2, 3... The sequences of Put calls never decrease;
// several calls may have the same sequence. A Put must not have a sequence that is already durable.
// So a store that lost a torn block must not reuse the block's number if the index has seen it. The
// store continues from the greater of its own last number and durable_sequence(). Another Put may
// follow with the last sequence, so Flush does not count this sequence as durable. A Put with a
// higher sequence, even a Put without entries, completes the last sequence, and so does Close.
// After opening, the store puts the entries of all blocks above durable_sequence() again, before
// anything newer.
//
// Thread-safety: every call may come from any thread. Calls that change the index run one at a
// time; DropGone lets other calls run between two parts. Lookups do not wait for the device reads
// and writes of other calls. Ownership: names, entries and results belong to the caller. Units:
// bytes, counts. Errors: kIoError and kNoSpace from the device; kCorruption if an engine's own
// files are too damaged to open; kInvalidArgument for a caller's mistake; kReadOnly for a change of
// an index that was opened read-only. After a failed Put or Flush the index stays readable. Each
// entry of a failed Put may be in the index or missing. The sequence of the failed Put and later
// sequences do not become durable until the index is opened again or, after kNoSpace, until
// PutAgain succeeds. An engine that detects a damaged page counts it and drops its entries. If the
// engine detects the damage while opening, durable_sequence() falls to a sequence up to which no
// entry is missing. A lookup need not detect damage, and may give a wrong answer, because an entry
// is only a hint; Verify detects the damage. A lookup of a name that was never put is not an error.
// When not to use it: for data that must not be lost.
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

// Memory limit of an index that may use as much as it needs.
inline constexpr uint64_t kNoMemoryLimit = UINT64_MAX;

struct IndexEntry {
  ChunkName name;
  Location location;
};

// An entry as the index has it. An engine need not store names.
struct OrderedEntry {
  uint64_t order = 0;  // ChunkIndex::OrderOf the name
  Location location;
};

// One of an engine's component stores, for `siltfs stat` and `siltfs index stat`.
struct IndexComponentStats {
  std::string kind;        // the engine's own word, such as "map" or "log_store"
  uint32_t partition = 0;  // 0 in engines without partitions
  uint64_t id = 0;         // within the index
  uint64_t entries = 0;
  uint64_t flash_bytes = 0;
  uint64_t memory_bytes = 0;
  uint64_t filter_memory_bytes = 0;  // the part of memory_bytes in filters beside an index
  double occupancy = 0;              // of its hash table, 0 to 1; 0 if it has none
  // Since the index was opened.
  uint64_t probes = 0;  // lookups that asked this store
  uint64_t flash_reads = 0;
  uint64_t false_positives = 0;  // reads that did not find the name of the lookup
  uint64_t flash_bytes_written = 0;

  // Share of the probes for absent names that caused a read; 0 to 1.
  double FalsePositiveRate() const;
};

// A fault found by Verify().
struct IndexFinding {
  std::string code;  // stable, for machines: "page-checksum", "entry-order", ...
  std::string path;
  std::optional<uint64_t> offset;  // bytes
  std::string text;                // one sentence
};

struct IndexStats {
  std::string engine;  // the name in the engine's row (index_engine.h); "none" without an index
  // An upper bound if the engine does not notice at once that a name is put twice.
  uint64_t entries = 0;
  uint64_t memory_bytes = 0;
  uint64_t flash_bytes = 0;
  // Since the index was opened.
  uint64_t lookups = 0;           // names looked up
  uint64_t flash_reads = 0;       // requests, for lookups
  uint64_t flash_pages_read = 0;  // pages of 4 KiB that flash_reads read
  uint64_t put_flash_reads = 0;   // to check whether a put name is present already
  uint64_t entry_bytes_put = 0;   // 32 per put entry or deletion
  uint64_t flash_bytes_written = 0;
  uint64_t damaged_pages = 0;  // their entries were dropped, during or after opening
  // Damaged filters and similar structures, found during or after opening. The index works without
  // these structures, but its lookups take more reads.
  uint64_t damaged_filters = 0;
  // Work on component stores. These are 0 in an engine without such work.
  uint64_t conversions = 0;    // component stores that were written again as another kind
  uint64_t merges = 0;         // several component stores that were written again as one
  uint64_t merge_backlog = 0;  // component stores that wait for a conversion or a merge
  uint64_t load_backlog = 0;   // structures in memory, such as filters, that are still to be read
  // All component stores; an engine that does not divide its index has one.
  std::vector<IndexComponentStats> stores;

  double ReadAmplification() const;   // flash reads per lookup; 0 before the first lookup
  double WriteAmplification() const;  // bytes written per byte put; 0 before the first put
};

class ChunkIndex {
 public:
  virtual ~ChunkIndex() = default;

  // Looks up all `names` at once; results[i] belongs to names[i] and is empty if the name is
  // absent. results.size() == names.size(). After an error the results of names that could not be
  // looked up are empty; the other results are right.
  Status Get(std::span<const ChunkName> names, std::span<std::optional<Location>> results);
  Result<std::optional<Location>> Get(const ChunkName& name);

  // Inserts or replaces all entries; they are visible to every Get that starts after the return.
  // `sequence` is the number of the block that the entries point into, or a later one. Locations
  // must name a segment. The call waits while background work lags behind, so that memory stays
  // bounded.
  Status Put(std::span<const IndexEntry> entries, uint64_t sequence);
  // Retries a Put that failed with kNoSpace. Call it before any other Put, with the same entries
  // and the same sequence. Once PutAgain succeeds, no entry is missing. A PutAgain without entries
  // abandons the entries of the failed Put. The caller may abandon entries only if lookups work
  // without them, because the index has older entries that still lead to the chunks.
  Status PutAgain(std::span<const IndexEntry> entries, uint64_t sequence);

  // Deletes a name's entry. The deletion is durable after the next Flush or Close. Deleting an
  // absent name does nothing.
  Status Delete(const ChunkName& name);

  // Makes all puts and deletions so far durable.
  Status Flush();

  // Returns when the engine has finished opening. Get and stats() need not wait for that. Calls
  // that change the index, ForEach and Verify wait. kCorruption if the engine's own files are too
  // damaged.
  Status WaitUntilOpen();

  // Limits the engine's memory from now on; kNoMemoryLimit: no limit. The engine frees the excess
  // before the call returns; lookups may take more reads from then on. After the limit rises, the
  // engine loads filters and similar structures from flash in the background. Every engine needs a
  // minimum, even at a limit of 0.
  Status SetMemoryLimit(uint64_t bytes);

  // The sequence up to which every entry put survives a power loss. 0 in a new index. Never
  // decreases.
  uint64_t durable_sequence() const;

  // The position of this name's entry in ForEach's order. Different names mostly have different
  // positions; an engine that stores no names may let names with the same position share an entry.
  // Constant as long as the index is open.
  uint64_t OrderOf(const ChunkName& name) const { return OrderOfImpl(name); }

  // Calls `visit` once for each entry that is live at some moment during the call, in rising order
  // of OrderOf. Stops at the first failure of `visit`. `visit` may call the index. The engine
  // cannot remove the files that the call is reading; these are the files of one part of the index
  // at a time (in SILT: of a partition). kCorruption if the files have entries in another order.
  using Visit = std::function<Status(const OrderedEntry&)>;
  Status ForEach(const Visit& visit);

  // Sets `gone`, which returns true for a segment that no longer exists. Callers treat an entry
  // that leads into a gone segment as a miss. So engines leave out such entries, and no others,
  // when they rewrite their files. The engine chooses when it rewrites, if ever. `gone` is called
  // from the engine's threads, perhaps for every entry, and must not call the index. A replaced
  // `gone` may still be called until the index is closed or destroyed. Empty at first; may be set
  // to empty.
  void SetGone(std::function<bool(SegmentId)> gone) { SetGoneImpl(std::move(gone)); }

  // Removes all entries that lead into gone segments (SetGone) at once. An engine may store its
  // entries in several parts (in SILT: the partitions). If so, the call rewrites all parts, one
  // after another. While it rewrites a part, Put, Delete and Flush wait, and the device holds the
  // old and the new files of this part. Between two parts these calls can run, and DropGone calls
  // `pace` unless it is empty. A failure of `pace` ends the call. Parts that were rewritten before
  // a failure stay rewritten; after kNoSpace the call may be repeated. The call changes only the
  // answers for names with entries that lead into gone segments, and does not change
  // durable_sequence().
  Status DropGone(const std::function<Status()>& pace = {});

  // Reads the whole index and checks it (in SILT: the order of entries, ranks, filters and counts).
  // Calls `report` with each fault. Fails only if the verification cannot continue. Slow; other
  // calls may run at the same time.
  Status Verify(const std::function<void(const IndexFinding&)>& report);

  IndexStats stats() const;

  // Flushes and closes the index; afterwards only stats() may be called. Destroying an index
  // without Close is like a crash.
  Status Close();

 protected:
  explicit ChunkIndex(bool read_only) : read_only_(read_only) {}
  ChunkIndex() : ChunkIndex(false) {}

 private:
  // Implemented by engines. ChunkIndex has checked the arguments and cleared the results. PutImpl,
  // DeleteImpl, FlushImpl, DropGoneImpl and CloseImpl are called one at a time, and never if the
  // index is read-only. WaitUntilOpenImpl and SetMemoryLimitImpl do not overlap with these calls or
  // with each other, but are also called if the index is read-only. The other functions are called
  // at any time.
  //
  // `complete` is the sequence up to which all entries have been put (for PutImpl: before this
  // call). DurableSequenceImpl may return `complete` once all entries put before the call are
  // durable. `complete` never decreases.
  virtual Status GetImpl(std::span<const ChunkName> names,
                         std::span<std::optional<Location>> results) = 0;
  virtual Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) = 0;
  virtual Status DeleteImpl(const ChunkName& name) = 0;
  virtual Status FlushImpl(uint64_t complete) = 0;
  // Also called before each of the five writing functions.
  virtual Status WaitUntilOpenImpl() { return Status::Ok(); }
  virtual Status SetMemoryLimitImpl(uint64_t /*bytes*/) { return Status::Ok(); }
  virtual uint64_t DurableSequenceImpl() const = 0;
  virtual Status ForEachImpl(const Visit& visit) = 0;
  virtual uint64_t OrderOfImpl(const ChunkName& name) const = 0;
  virtual void SetGoneImpl(std::function<bool(SegmentId)> /*gone*/) {}
  // Rewrites one part (numbered from 0) and returns whether another part follows.
  virtual Result<bool> DropGoneImpl(size_t /*part*/, uint64_t /*complete*/) { return false; }
  virtual Status VerifyImpl(const std::function<void(const IndexFinding&)>& report) = 0;
  // The engine's statistics, without `lookups` and `entry_bytes_put`: ChunkIndex counts these.
  virtual IndexStats StatsImpl() const = 0;
  virtual Status CloseImpl(uint64_t complete) = 0;

  Status CheckOpen() const;
  Status CheckWritable() const;
  Status PutLocked(std::span<const IndexEntry> entries, uint64_t sequence)
      SILTFS_REQUIRES(write_mutex_);
  // Returns the last sequence, at most `sequence`, up to which every Put succeeded.
  uint64_t CompleteUpTo(uint64_t sequence) const SILTFS_REQUIRES(write_mutex_);

  const bool read_only_;
  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> lookups_{0};
  std::atomic<uint64_t> entry_bytes_put_{0};

  Mutex write_mutex_;  // taken before any lock of an engine
  uint64_t last_sequence_ SILTFS_GUARDED_BY(write_mutex_) =
      0;  // of the last Put since opening; 0: no Put yet
  uint64_t failed_sequence_ SILTFS_GUARDED_BY(write_mutex_) =
      0;  // of the first failed Put; 0: no failure
  // True if every failed Put had the sequence failed_sequence_ and failed with kNoSpace. PutAgain
  // can then repair the failure.
  bool no_room_ SILTFS_GUARDED_BY(write_mutex_) = false;
};

}  // namespace siltfs
