// Puts and gets chunks: the write path from uncompressed bytes to segments with inline
// deduplication, and the read path back.
//
// Put stores chunks that are not stored yet (deduplicator.h). New chunks gather in a block. Worker
// threads compress full blocks, append them to the open segment in the order in which they filled,
// and enter their chunks into the index (block_pipeline.h). Memory in the pipeline is bounded; Put
// waits for room.
//
// Thread-safety: every call from any thread. Ownership: ChunkBytes share the block they point into.
// Errors: Put fails with kNoSpace, and accepts nothing, if `check_room` does; it fails with
// kInvalidArgument for a chunk of impossible length. If a later write meets a full disk, accepted
// chunks wait in memory for room. PrepareCommit and Finish then fail with kNoSpace, and so does Put
// when memory has no room either. All three may be called again. After any other failed write or
// sync of segments or the index, every Put, PrepareCommit and Finish fails with kReadOnly and the
// first cause; reads go on. Get fails with kCorruption for exactly the chunks that are damaged or
// missing, and never returns wrong bytes. Once a chunk is known to be damaged, the next Put of its
// bytes stores it again under its name. Durability: Put gives none. Chunks put before PrepareCommit
// are durable when PrepareCommit returns OK (the store participates in fs/meta's commits). Source:
// the write and read paths of docs/architecture.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/dedup/chunk_reader.h"
#include "fs/dedup/damage_list.h"
#include "fs/dedup/epoch_gate.h"
#include "fs/dedup/garbage_collector.h"
#include "fs/dedup/recompressor.h"
#include "fs/dedup/scrub_outcome.h"
#include "fs/meta/garbage_record.h"
#include "fs/meta/metadata_store.h"
#include "fs/meta/recipe.h"
#include "fs/meta/recipe_node.h"
#include "fs/meta/segment_record.h"
#include "index/chunk_index.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// A chunk's uncompressed bytes, kept alive by `owner`.
struct ChunkBytes {
  std::shared_ptr<const void> owner;
  ByteView bytes;
};

struct ChunkStoreOptions {
  std::string store;  // path
  Superblock superblock;
  bool read_only = false;       // Put and PrepareCommit fail with kReadOnly; log options are unused
  SegmentId first_segment = 1;  // ids from here on have never been used
  SegmentId segment_limit = 1;  // ids from here on must be claimed first
  std::function<Result<SegmentId>()> claim_segments;  // claims more, durably; returns the new limit
  uint64_t first_sequence = 1;                        // of blocks
  uint64_t last_commit = 0;                           // number of the last commit
  uint64_t sha1_collisions = 0;                       // met so far
  GarbageRecord garbage;                              // as of the last commit
  std::vector<DamagedBlock> damage;                   // known damage
  std::vector<SegmentId> secondary;                   // segments that may hold secondary copies
  std::optional<ScrubRecord> scrub;                   // an unfinished scrub
  size_t worker_threads = 2;                          // compress and append blocks
  size_t pipeline_bytes = 5u << 20;                   // uncompressed bytes in the pipeline, at most
  size_t idle_block_plain_bytes = 0;                  // BlockPipeline::Options
  size_t block_cache_bytes = 10u << 20;               // decoded blocks
  size_t readahead_threads = 2;                       // 0: no readahead
  size_t footer_cache_bytes = 5u << 20;               // cached footer parts
  // Fails if `bytes` more may not be accepted (SpaceReserve::CheckRoom); may be empty.
  std::function<Status(uint64_t bytes)> check_room;
  uint64_t spare_bytes = 0;  // disk space that recompression leaves free, at least
  // Garbage collection leaves this much of the reserve and the free space to metadata and the
  // index.
  uint64_t room_for_others = 8u << 20;
  std::function<uint64_t()> reserve_bytes;         // garbage collection may use it; may be empty
  std::function<void(const std::string&)> report;  // called with damage found while opening or
                                                   // recompressing; may be empty
  // Writes metadata durably outside of commits; needed for recompression.
  std::function<Status(const std::vector<Mutation>&)> write_through;
  std::chrono::milliseconds recompress_after{5000};  // before background recompression
  // Needed for garbage collection (GarbageCollector::Options).
  std::function<Status()> commit;
  std::function<std::shared_ptr<const KvSnapshot>()> snapshot;
  std::string spill_directory;
};

struct ChunkStoreTotals {
  uint64_t stored_bytes = 0;                  // of segment files
  uint64_t awaiting_recompression_bytes = 0;  // of these, in data segments not yet recompressed
  uint64_t dead_bytes = 0;                    // of stored_bytes, as far as is known
  uint64_t chunks = 0;                        // distinct data chunks in use, as far as is known
  uint64_t plain_bytes = 0;                   // uncompressed bytes of these chunks
  uint64_t sha1_collisions = 0;
  uint64_t damaged_blocks = 0;  // known ones, including healed ones
  uint64_t damaged_chunks = 0;
};

class ChunkStore : public CommitParticipant, public NodeStore {
 public:
  // Continues the segments that a clean unmount left unsealed. A damaged segment is salvaged and
  // sealed, and the store opens all the same. `records`: the segments known to metadata and
  // recovery (segment_recovery.h). `unindexed`: entries that a read-only mount could not put into
  // the index. `env` and `index` must outlive the store.
  static Result<std::unique_ptr<ChunkStore>> Open(
      Env& env, ChunkIndex& index, ChunkStoreOptions options,
      const std::vector<std::pair<SegmentId, SegmentRecord>>& records,
      std::vector<IndexEntry> unindexed);
  ~ChunkStore() override;

  // For a store in which no segment was ever noted for secondary copies (secondary_copies.h); call
  // before any Put. Compares all segments with the index, and makes entries for chunks that the
  // index does not know. Durably notes each segment that is damaged or has a chunk to which the
  // index does not lead. In a store of more than a million chunks it notes all segments instead;
  // garbage collections compare these later.
  Status BeginNotes(const std::vector<std::pair<SegmentId, SegmentRecord>>& records);
  // `victims`: segments that were victims when the last mount ended. Call before any Put. After a
  // crash the index may lead nowhere for their chunks; CompareVictims then makes it lead to them
  // again.
  Status CompareVictims(const std::vector<SegmentId>& victims, bool crashed);

  // A thread that puts or reads chunks holds a Use. It takes the Use before it gets the chunks'
  // names. It releases the Use when metadata has the names or the thread no longer needs them. A
  // Use may be held during all other calls except CollectGarbage.
  class Use : public EpochGate::Pin {
   public:
    explicit Use(ChunkStore& store);
  };

  // Stores the chunks, and sets names[i] to the name by which Get finds chunks[i]. Each chunk is 1
  // byte to the superblock's chunk_max long.
  Status Put(std::span<const ByteView> chunks, std::span<ChunkName> names);
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length);
  // Get for callers that read the chunks of a file in order: the next chunk is often found behind
  // the last one, without a look-up. The caller owns the read cursor, which is empty at first and
  // keeps a block in memory.
  using ReadCursor = ChunkReader::ReadCursor;
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);

  // Call when any file is read, even a small one: background work yields to reads.
  void NoteUse();
  // Call after [offset, offset + length) of a file was read; `recipe` describes its first `limit`
  // bytes. A sequential reader will then find the next chunks in memory (readahead.h). Cheap.
  void NoteRead(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                uint64_t length);
  // Call when the file is no longer read.
  void ForgetReads(uint64_t file);
  struct ReadStats {
    uint64_t blocks_decoded = 0;  // since the store was opened
    size_t blocks_ahead = 0;      // decoded ahead of sequential readers
  };
  ReadStats read_stats() const;
  // Returns when all readahead that is due is done.
  void WaitForReadahead();

  // Put and get recipe nodes. Nodes are stored uncompressed, in segments of their own.
  Result<ChunkName> PutNode(ByteView node) override;
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;

  Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) override;
  void CommitDone(uint64_t number) override;

  // Returns why Put fails permanently; OK as long as Put works.
  Status failure() const;

  ChunkStoreTotals totals() const;

  // Recompression of stored segments (recompressor.h) with superblock.compression. A sealed segment
  // is recompressed once its record is committed.
  //
  // Returns when all segments filled before the call are sealed, or when sealing fails, for example
  // on a full disk; the next commit then fails, too.
  void WaitUntilSealed();
  Result<RecompressionOutcome> Recompress();
  // Recompresses in the background from now on, whenever no chunk is put or read.
  void StartRecompression();
  // Permanently ends background recompression and a running Recompress, soon. Call it while
  // `write_through` may still be called.
  void StopRecompression();

  // Garbage collection (garbage_collector.h): runs it now, or estimates its outcome.
  Result<GarbageOutcome> CollectGarbage();
  Result<GarbageOutcome> EstimateGarbage();
  // Collects in the background from now on (GarbageCollector::StartInBackground).
  void StartCollecting();
  // Call when about this many bytes of file content were removed or replaced.
  void NoteReleased(uint64_t bytes);
  // Ends collecting permanently, like StopRecompression.
  void StopCollecting();

  // Encloses a scrub: its preparations, Scrub, and the processing of its outcome.
  class ScrubCall {
   public:
    explicit ScrubCall(ChunkStore& store);
    ~ScrubCall();
    ScrubCall(const ScrubCall&) = delete;
    ScrubCall& operator=(const ScrubCall&) = delete;

   private:
    ChunkStore& store_;
  };
  // Verifies all segments that were sealed at the last commit (scrubber.h). Call within a
  // ScrubCall.
  Result<ScrubOutcome> Scrub(ScrubPace pace);
  // Ends the scrubs of the current ScrubCalls; the next scrub continues where they stopped.
  void InterruptScrub();
  // Returns kInterrupted in a ScrubCall that InterruptScrub ended.
  Status CheckScrubbing() const;
  // Ends scrubbing permanently, like StopRecompression.
  void StopScrubbing();
  // The list of damage, ascending.
  std::vector<DamagedBlock> damage() const;

  // The next unused segment id, for a clean unmount.
  SegmentId next_segment_id() const;

  // For a clean unmount: makes everything durable, ends the threads, and appends the last metadata
  // changes. After Finish, also if it failed, only totals() and next_segment_id() may be called.
  // After kNoSpace, Finish may be called again, too.
  Status Finish(std::vector<Mutation>& extra);

 private:
  struct Parts;
  explicit ChunkStore(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace siltfs
