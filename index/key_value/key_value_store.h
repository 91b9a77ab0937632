// A key-value store of keys and values of any length, on a SILT index (SILT, section 4,
// "Variable-Length Key-Values": indirection with inlining). Keys are found by a hash of 20 bytes.
// Each has a slot of a fixed size with the first part of key and value; what doesn't fit is in a
// log of its own, one more read away. The size of slots is chosen for what is stored: large ones
// save reads, small ones space (docs/silt.md, "Keys and values of any length"); segregated_store.h
// chooses by itself among several.
//
// When not to use it: for chunks of files, which have names, checksums and garbage collection of
// their own; and where keys are to be listed in their order.
//
// Thread-safety: any call from any thread. Put, Delete, Flush, Reclaim and Close wait for one
// another (Reclaim lets others in between); lookups wait for nobody's device. A store has one
// KeyValueStore at a time; who owns the directory sees to that. Ownership: `env` must outlive the
// store.
//
// Durability: what was put and deleted is durable when a Flush or Close that began later has
// returned OK. After a crash each key has what it had then, or what was put or deleted after that:
// nothing in between is lost from an older state, and no value is another's.
//
// Errors: kInvalidArgument for keys and values that are too long; kCorruption with the path of what
// is damaged, never wrong bytes; ForEach and Reclaim fail where pages of the index are damaged. A
// lookup doesn't check a whole page of a HashStore or SortedStore: if the name in a slot there is
// damaged, the slot counts as absent, and an older one of the name may be found (Verify tells).
// kNoSpace fails a call, which may be made again; any other failure to write is for good until the
// store is opened again, and lookups go on. Opening fails with kCorruption where entries that were
// durable are gone, unless it is told to go on without.
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
  std::string directory;  // is there, and empty or a store's
  bool read_only = false;
  // Of a new store; an old one keeps what it was made with. A power of two, 32 to 2,048.
  size_t slot_size = 64;
  // Of the index; directory, read_only, slot_bits and serve_early are set by the store. bucket_bits
  // are of slots of 32 bytes: LogStores of larger ones have fewer, so that they are as large.
  SiltIndexOptions index;
  // Of the value log; likewise.
  ValueLogOptions values;
};

struct KeyValueStats {
  IndexStats index;  // lookups and entry_bytes_put included
  ValueLogStats values;
  // Of both: the index's for lookups, and the blocks of values that were read for any call.
  uint64_t flash_reads = 0;
  uint64_t flash_bytes = 0;  // that both take
};

struct ReclaimOptions {
  // A segment of the value log is emptied if no more than this share of it is in use. 0 to 1.
  double most_in_use = 0.5;
  // More segments than that of less than an eighth of their size, as openings and closings leave
  // them, are put together, whatever of them is in use.
  size_t most_small_segments = 8;
};

struct ReclaimResult {
  uint64_t segments_removed = 0;
  uint64_t bytes_removed = 0;     // on flash
  uint64_t records_moved = 0;     // that were in use
  uint64_t segments_damaged = 0;  // left as they are
};

class KeyValueStore : private EntryOwner {
 public:
  static Result<std::unique_ptr<KeyValueStore>> Open(Env& env, const KeyValueOptions& options);
  // kInvalidArgument for slots that no store can have.
  static Status CheckSlotSize(size_t bytes);
  ~KeyValueStore() override;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // --- Reading ---

  Result<std::optional<Bytes>> Get(ByteView key);
  // values[i] belongs to keys[i]. After an error the values that could not be told are empty, the
  // others are right.
  Status Get(std::span<const ByteView> keys, std::span<std::optional<Bytes>> values);
  // Calls `visit` once for each key, in no order, as of some moment during the call; stops at its
  // first failure. `visit` may call the store.
  Status ForEach(const std::function<Status(const Item&)>& visit);
  // Reads everything; calls `report` with each thing that is wrong: what ChunkIndex::Verify finds,
  // and "value-missing", "value-damaged", "item-damaged". Fails only where it can't go on.
  Status Verify(const std::function<void(const IndexFinding&)>& report);

  // --- Writing ---

  Status Put(ByteView key, ByteView value);
  Status Delete(ByteView key);
  Status Flush();
  // Flushes, and gives back the space of values that are no longer in use. Reads the whole index
  // first, and then the segments that it empties.
  Result<ReclaimResult> Reclaim(const ReclaimOptions& options);
  // How much memory the index may use (chunk_index.h).
  Status SetMemoryLimit(uint64_t bytes);
  // Flushes; no call but stats() may follow, also after an error.
  Status Close();

  // --- State ---

  size_t slot_size() const { return layout_.slot_size(); }
  // Whether an item fits its slot, so that a lookup takes no second read.
  bool IsInlined(size_t key_size, size_t value_size) const {
    return ItemSize(key_size, value_size) <= layout_.rest_size();
  }
  KeyValueStats stats() const;

 private:
  // A copy of what a slot holds.
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
  // All bytes of the item that an entry leads to. kNotFound: its segment is gone.
  Result<Bytes> ReadItem(const ChunkName& name, const Found& found) const;
  // The same, looking the name up again while segments go. Nothing if the name is gone, too.
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

  Mutex reclaim_mutex_ SILTFS_ACQUIRED_BEFORE(write_mutex_);  // one at a time
  Mutex write_mutex_;  // before any lock of the engine and the log
  uint64_t flushes_ SILTFS_GUARDED_BY(write_mutex_) = 0;  // as the engine's sequence
};

}  // namespace siltfs
