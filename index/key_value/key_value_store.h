// A key-value store of keys and values of any length, on a SILT index (SILT, section 4,
// "Variable-Length Key-Values": indirection with inlining). Keys are found by a hash of 20 bytes.
// Each key has a slot of a fixed size with the first part of key and value. The rest is in a
// separate log and costs one more read. Choose the slot size by the sizes of the items: large slots
// save reads, small slots save space (docs/silt.md, "Keys and values of any length"). A
// SegregatedStore has several slot sizes, and chooses one of them for each item.
//
// When not to use it: if keys must be listed in order; or for chunks of files, because the file
// system has names, checksums and garbage collection of its own for them.
//
// Thread-safety: any call from any thread. Put, Delete, Flush, Reclaim and Close wait for one
// another, but Reclaim lets the other calls run between its steps. Lookups do not wait for the
// device access of other calls. Only one KeyValueStore may use a store at a time; the directory's
// owner must ensure that. Ownership: `env` must outlive the store.
//
// Durability: Puts and Deletes are durable when a Flush or Close that began later has returned OK.
// After a crash each key has the state that it had at that Flush, or a later state. It never falls
// back to an older state, and never has another key's value.
//
// Errors: kInvalidArgument for keys and values that are too long. For damage, calls return
// kCorruption with the path of the damaged file, and never wrong bytes. ForEach and Reclaim fail if
// pages of the index are damaged. A lookup doesn't verify whole pages of HashStores and
// SortedStores: if the name in a slot is damaged, the slot counts as absent, and an older entry of
// the name may be found (Verify reports it). kNoSpace fails only the call that returns it; the call
// may be repeated. Any other write failure is permanent until the store is opened again; lookups
// continue. Opening fails with kCorruption if durable entries are lost, unless accept_lost_entries
// is set.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/key_value/item.h"
#include "index/key_value/key_value_manifest.h"
#include "index/key_value/value_log.h"
#include "index/silt/silt_engine.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

struct KeyValueOptions {
  std::string directory;  // must exist, and be empty or hold a store
  bool read_only = false;
  // For a new store; an existing one keeps its size. A power of two, 32 to 2,048.
  size_t slot_size = 64;
  // Options of the index; the store sets directory, read_only, layout and serve_early.
  // bucket_bits applies to slots of 32 bytes: LogStores with larger slots have fewer buckets, so
  // that their size is the same.
  SiltIndexOptions index;
  // Options of the value log; the store sets directory and read_only.
  ValueLogOptions values;
};

struct KeyValueStats {
  IndexStats index;  // including lookups and entry_bytes_put
  ValueLogStats values;
  // Reads of the index for lookups, plus value blocks read for any call.
  uint64_t flash_reads = 0;
  uint64_t flash_bytes = 0;  // of index and values
};

struct ReclaimOptions {
  // A segment of the value log is emptied if at most this share of it is in use. 0 to 1.
  double most_in_use = 0.5;
  // If more than this many segments are smaller than an eighth of the full size, Reclaim combines
  // them, however much of them is in use. Opening and closing the store leaves such small segments.
  size_t most_small_segments = 8;
};

struct ReclaimResult {
  uint64_t segments_removed = 0;
  uint64_t bytes_removed = 0;     // on flash
  uint64_t records_moved = 0;     // live records
  uint64_t segments_damaged = 0;  // left unchanged
};

class KeyValueStore : private EntryOwner {
 public:
  static Result<std::unique_ptr<KeyValueStore>> Open(Env& env, const KeyValueOptions& options);
  // kInvalidArgument for an invalid slot size.
  static Status CheckSlotSize(size_t bytes);
  ~KeyValueStore() override;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // --- Reading ---

  Result<std::optional<Bytes>> Get(ByteView key);
  // Looks up all `keys` at once; values[i] belongs to keys[i] and is empty if the key is absent.
  // After an error the values that could not be read are empty; the other values are right.
  Status Get(std::span<const ByteView> keys, std::span<std::optional<Bytes>> values);
  // Calls `visit` once for each key that exists at some moment during the call, in no particular
  // order. Stops at the first failure of `visit`. `visit` may call the store.
  Status ForEach(const std::function<Status(const Item&)>& visit);
  // Reads everything; calls `report` with each fault: the faults of ChunkIndex::Verify, and
  // "value-damaged", "item-damaged". Fails only if the verification can't continue.
  Status Verify(const std::function<void(const IndexFinding&)>& report);

  // --- Writing ---

  Status Put(ByteView key, ByteView value);
  Status Delete(ByteView key);
  Status Flush();
  // Flushes, and frees the space of values that are no longer in use. Reads the whole index first,
  // and then the segments that it empties.
  Result<ReclaimResult> Reclaim(const ReclaimOptions& options);
  // Limits the index's memory (chunk_index.h).
  Status SetMemoryLimit(uint64_t bytes);
  // Flushes. Only stats() may be called afterwards, even after an error.
  Status Close();

  // --- State ---

  size_t slot_size() const { return layout_.slot_size(); }
  // Whether an item of these sizes fits in a slot, so that a lookup needs no second read.
  bool IsInlined(size_t key_size, size_t value_size) const {
    return ItemSize(key_size, value_size) <= layout_.rest_size();
  }
  KeyValueStats stats() const;

 private:
  // A copy of a slot's contents.
  struct Found {
    explicit Found(const SlotEntry& entry)
        : location(entry.location), rest(entry.rest.begin(), entry.rest.end()) {}
    Location location;
    Bytes rest;
  };
  class LiveBytes;

  KeyValueStore(const KeyValueOptions& options, const KeyValueManifest& manifest,
                std::unique_ptr<ValueLog> values);

  // EntryOwner
  Status MakeDurable() override;
  bool Holds(const SlotEntry& entry) override;

  Result<ChunkName> NameOf(ByteView key) const;
  Result<std::optional<Found>> Find(const ChunkName& name);
  // Reads all bytes of an entry's item. kNotFound if its segment was removed.
  Result<Bytes> ReadItem(const ChunkName& name, const Found& found) const;
  // Like ReadItem, but looks the name up again if its segment was removed. Empty if this second
  // lookup finds that the name was deleted.
  Result<std::optional<Bytes>> ReadCurrentItem(const ChunkName& name, Found found);
  Result<std::optional<Bytes>> ValueOf(ByteView key, const ChunkName& name, Found found);
  Status Enter(const SlotEntry& entry) SILTFS_REQUIRES(write_mutex_);
  Status FlushHoldingWriteMutex() SILTFS_REQUIRES(write_mutex_);
  Result<uint64_t> MoveLiveRecords(SegmentId segment, ReclaimResult& result);
  Status CheckOpen() const;
  Status CheckWritable() const;

  const KeyValueOptions options_;
  const SlotLayout layout_;
  const std::array<uint8_t, 32> secret_;
  const std::unique_ptr<ValueLog> values_;
  std::unique_ptr<SiltEngine> engine_;  // set once, in Open

  std::atomic<bool> closed_{false};
  std::atomic<uint64_t> lookups_{0};
  std::atomic<uint64_t> entries_put_{0};

  Mutex reclaim_mutex_ SILTFS_ACQUIRED_BEFORE(write_mutex_);  // Reclaim calls run one at a time
  Mutex write_mutex_;  // taken before any lock of the engine and the log
  uint64_t flushes_ SILTFS_GUARDED_BY(write_mutex_) = 0;  // used as the engine's sequence
};

}  // namespace siltfs
