// Puts and gets chunks: the write path from plain bytes to segments with inline deduplication, and
// the read path back.
//
// Put stores what is not there yet (deduplicator.h). New chunks gather in a block; full blocks are
// compressed on worker threads and appended to the open segment in the order in which they filled,
// then entered into the index (block_pipeline.h). Memory on the way is bounded; Put waits for room.
//
// Thread-safety: every call from any thread. Ownership: ChunkBytes share the block they point into.
// Errors: kNoSpace before anything is accepted when `check_room` says so; kInvalidArgument for a
// chunk of impossible length. Where a write meets a full disk all the same, what was accepted waits
// for room: PrepareCommit and Finish fail with kNoSpace, as does a Put for which there is no room
// in memory either, and may be called again. After any other failed write, or a sync, of segments
// or the index, every Put, PrepareCommit and Finish fails with kReadOnly and the first cause, reads
// go on. Get: kCorruption for exactly the chunk that is damaged or missing, never wrong bytes; once
// it is known to be damaged, whoever puts it again stores it anew under its name.
// Durability: none by Put; what was put before PrepareCommit is durable when that returns OK (it is
// the participant of fs/meta's commits). Source: the write and read paths of docs/architecture.md.
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

// A chunk's plain bytes, kept alive by `owner`.
struct ChunkBytes {
  std::shared_ptr<const void> owner;
  ByteView bytes;
};

struct ChunkStoreOptions {
  std::string store;  // path
  Superblock superblock;
  bool read_only = false;  // Put and PrepareCommit answer kReadOnly; what follows is of no meaning
  SegmentId first_segment = 1;                        // ids from here on have never been used
  SegmentId segment_limit = 1;                        // ids from here on must be claimed first
  std::function<Result<SegmentId>()> claim_segments;  // claims more, durably; returns the new limit
  uint64_t first_sequence = 1;                        // of blocks
  uint64_t last_commit = 0;                           //
  uint64_t sha1_collisions = 0;                       // met so far
  GarbageRecord garbage;                              // as of the last commit
  std::vector<DamagedBlock> damage;                   // that is known
  std::vector<SegmentId> secondary;                   // that may hold secondary copies
  std::optional<ScrubRecord> scrub;                   // that has not ended
  size_t worker_threads = 2;                          // that compress and append
  size_t pipeline_bytes = 5u << 20;                   // plain bytes on their way, at most
  size_t idle_block_plain_bytes = 0;                  // BlockPipeline::Options
  size_t block_cache_bytes = 10u << 20;               // decoded blocks
  size_t readahead_threads = 2;                       // 0: no readahead
  size_t window_cache_bytes = 5u << 20;               // footer windows
  // Whether so many bytes may be accepted (SpaceReserve::CheckRoom); may be empty.
  std::function<Status(uint64_t bytes)> check_room;
  uint64_t spare_bytes = 0;  // of the disk, that settling leaves free, at least
  // What garbage collection leaves of the reserve and of what is free to metadata and the index.
  uint64_t room_for_others = 8u << 20;
  std::function<uint64_t()> reserve_bytes;  // that garbage collection may draw on; may be empty
  std::function<void(const std::string&)> report;  // told of damage met while opening, or while
                                                   // segments are settled; may be empty
  // Writes metadata durably beside the commits; needed where segments are to be settled.
  std::function<Status(const std::vector<Mutation>&)> write_through;
  std::chrono::milliseconds settle_after{5000};  // nothing was put or read, in the background
  // Needed where garbage is to be collected (GarbageCollector::Options).
  std::function<Status()> commit;
  std::function<std::shared_ptr<const KvSnapshot>()> snapshot;
  std::string spill_directory;
};

struct ChunkStoreTotals {
  uint64_t stored_bytes = 0;                  // of segment files
  uint64_t awaiting_recompression_bytes = 0;  // of these, in data segments that are not settled
  uint64_t dead_bytes = 0;                    // of these, as far as is known
  uint64_t chunks = 0;                        // distinct data chunks in use, as far as is known
  uint64_t plain_bytes = 0;                   // theirs
  uint64_t sha1_collisions = 0;
  uint64_t damaged_blocks = 0;  // that are known, healed ones included
  uint64_t damaged_chunks = 0;
};

class ChunkStore : public CommitParticipant, public NodeStore {
 public:
  // Goes on with the segments that a clean unmount left unsealed; one that is damaged is sealed as
  // far as it is whole, and does not keep the store from opening. `records` are the segments as
  // metadata and recovery (segment_recovery.h) know them; `unindexed` what a read-only mount could
  // not enter into the index. `env` and `index` must outlive it.
  static Result<std::unique_ptr<ChunkStore>> Open(
      Env& env, ChunkIndex& index, ChunkStoreOptions options,
      const std::vector<std::pair<SegmentId, SegmentRecord>>& records,
      std::vector<IndexEntry> unindexed);
  ~ChunkStore() override;

  // For a store whose segments were never noted for secondary copies (secondary_copies.h), before
  // anything is put: compares them all with the index, has it lead to chunks that it does not know,
  // and notes, durably, those segments to whose chunks it does not lead. Of a store of more than a
  // million chunks it notes all segments; collections compare them.
  Status BeginNotes(const std::vector<std::pair<SegmentId, SegmentRecord>>& records);
  // For segments that were condemned when the last mount ended, before anything is put. If it
  // crashed, the index may lead nowhere for their chunks, and is made to lead to them again.
  Status CompareCondemned(const std::vector<SegmentId>& condemned, bool crashed);

  // Whoever puts or reads chunks holds one of these from before it has their names until metadata
  // has them, or it needs them no more. May be held over other calls, but Collect's.
  class Use : public EpochGate::Pin {
   public:
    explicit Use(ChunkStore& store);
  };

  // names[i] becomes the name under which chunks[i] can be got. Each chunk is 1 byte to the
  // superblock's chunk_max long.
  Status Put(std::span<const ByteView> chunks, std::span<ChunkName> names);
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length);
  // For who gets one chunk of a file after another: the next one is often found where the last one
  // was, without a look-up. The trail is the caller's, empty at first, and holds a block.
  using Trail = ChunkReader::Trail;
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length, Trail& trail);

  // Files are read, if only small ones: what is done in the background makes way.
  void NoteUse();
  // [offset, offset + length) of a file were read, whose first `limit` bytes are as `recipe` says:
  // whoever reads on in order will find the next chunks in memory (readahead.h). Costs little.
  void NoteRead(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                uint64_t length);
  // Nobody reads that file any more.
  void ForgetReads(uint64_t file);
  struct ReadStats {
    uint64_t blocks_decoded = 0;  // since the store was opened
    size_t blocks_ahead = 0;      // of those who read in order
  };
  ReadStats read_stats() const;
  // Returns when what is to be read ahead by now was.
  void WaitForReadahead();

  // Recipe nodes, in segments of their own, uncompressed.
  Result<ChunkName> PutNode(ByteView node) override;
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;

  Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) override;
  void CommitDone(uint64_t number) override;

  // Why nothing can be put any more; OK as long as it can.
  Status failure() const;

  ChunkStoreTotals totals() const;

  // Recompression of what was put (recompressor.h): superblock.compression is what segments settle
  // at. What is sealed is settled once its record is committed.
  // Returns when every segment is sealed that what was put before the call has filled, or when that
  // fails, on a full disk for one: as the next commit will.
  void WaitUntilSealed();
  Result<SettleOutcome> Settle();
  // Settles in the background from now on, whenever nothing is being put or read.
  void StartSettling();
  // Ends it for good, and a Settle under way; soon. To be called before `write_through` may no
  // longer be.
  void StopSettling();

  // Garbage collection (garbage_collector.h), now; or what it would find.
  Result<GarbageOutcome> CollectGarbage();
  Result<GarbageOutcome> EstimateGarbage();
  // Collects in the background from now on (GarbageCollector::StartInBackground).
  void StartCollecting();
  // So much of files' content, about, was removed or replaced.
  void NoteReleased(uint64_t bytes);
  // Ends it for good, as StopSettling.
  void StopCollecting();

  // Somebody scrubs: from before what comes before Scrub to the end of what is made of its outcome.
  class ScrubCall {
   public:
    explicit ScrubCall(ChunkStore& store);
    ~ScrubCall();
    ScrubCall(const ScrubCall&) = delete;
    ScrubCall& operator=(const ScrubCall&) = delete;

   private:
    ChunkStore& store_;
  };
  // Verifies all segments that are sealed as of the last commit (scrubber.h). Within a ScrubCall.
  Result<ScrubOutcome> Scrub(ScrubPace pace);
  // Ends the calls there are; the next scrub goes on where theirs was.
  void InterruptScrub();
  // kInterrupted to these.
  Status CheckScrubbing() const;
  // Ends it for good, as StopSettling.
  void StopScrubbing();
  // Ascending.
  std::vector<DamagedBlock> damage() const;

  // The next segment id not used, for a clean unmount.
  SegmentId next_segment_id() const;

  // For a clean unmount: makes everything durable, ends the threads, and appends what metadata has
  // to know in the end. After it, or a failure, only totals() and next_segment_id() may be called.
  Status Finish(std::vector<Mutation>& extra);

 private:
  struct Parts;
  explicit ChunkStore(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace siltfs
