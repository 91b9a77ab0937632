// The way from chunks to index entries. The pipeline collects new chunks in a block of each kind,
// and compresses full blocks on worker threads. It appends these blocks to the segment log in the
// order in which they filled, and enters their chunks into the index.
//
// Larger blocks take less space, but reading one chunk from a larger block costs more. A full data
// block keeps growing only while the store is not busy, that is, while few bytes are queued for the
// workers.
//
// A chunk is *pending* from Add until its index entry is made. While it is pending, the pipeline
// finds it by its name and returns its tag and bytes. The pipeline remembers its name and tag for a
// while longer, for threads that looked into the index just before the entry was made. If the
// pipeline did not remember them, such a thread could add a second chunk with the same name and
// different bytes (a SHA-1 collision).
//
// Thread-safety: every call from any thread. Memory: the open blocks, about `capacity_bytes` of
// uncompressed bytes in queued blocks, and about as many compressed bytes. Add waits for room.
// Errors: on a full disk blocks stay queued. Every Flush, and every Add that would wait for room,
// tries again and fails with kNoSpace if the disk is still full. The first failure of another kind,
// in compressing, appending or indexing, ends the log (SegmentLog::Fail). Every waiting and every
// later call returns that failure. Pending chunks stay readable. Durability: none; see
// SegmentLog::SyncAll.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fs/segments/segment_log.h"
#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class BlockPipeline {
 public:
  struct Options {
    size_t worker_threads = 1;
    size_t capacity_bytes = 0;              // required
    size_t block_plain_bytes = 128u << 10;  // a block is full when it holds this much
    // A full data block grows up to this size while at most this many bytes are queued for each
    // worker. A value no larger than block_plain_bytes turns growth off. Without growth, the speed
    // of the workers has no influence on which chunks share a block.
    size_t idle_block_plain_bytes = 0;
    size_t chunk_max = 64u << 10;
    Compression compression;  // of data blocks; recipe nodes stay uncompressed
  };
  BlockPipeline(SegmentLog& log, ChunkIndex& index, const BlockCodec& codec,
                const Options& options);
  // Ends the workers; pending chunks are lost. Call Flush first.
  ~BlockPipeline();

  enum class Outcome : uint8_t {
    kAdded,      // the chunk was new
    kDuplicate,  // a pending or remembered chunk has this name and tag
    kCollision,  // a pending or remembered chunk has this name and another tag
    kLookAgain,  // not added: the pipeline no longer remembers all blocks appended since
                 // `looked_at`, so look into the index again
  };

  // Returns the current point in the order of blocks. The index has the entries of all blocks that
  // were appended before this point.
  uint64_t Now();
  // Adds a chunk, unless a chunk of the same name is pending or remembered. Before the call the
  // caller must have called Now, and then have looked into the index without finding the chunk.
  // `looked_at` is the point that Now returned. Copies `bytes`, 1 to kMaxBlockPlainBytes. After
  // kNoSpace nothing was added.
  Result<Outcome> Add(SegmentKind kind, const ChunkRecord& record, ByteView bytes,
                      uint64_t looked_at);

  // Returns the tag of the chunk of this name, if it is pending or remembered.
  std::optional<ChunkTag> FindPending(const ChunkName& name);
  struct PendingBytes {
    std::shared_ptr<const void> owner;
    ByteView bytes;
  };
  std::optional<PendingBytes> GetPending(const ChunkName& name);

  // Returns when all chunks added before the call are appended and indexed. After kNoSpace the
  // remaining chunks stay queued for the next Flush.
  Status Flush();

  // Forgets the chunks that are remembered and no longer pending. From now on only the index finds
  // them.
  void ForgetAppended();

  // --- For chunks that the index already has and that are moved (relocator.h). Moved chunks are
  // never pending. Moves and appends of new blocks take turns.

  // Appends a block of moved chunks to the stream for moved chunks of this kind.
  Result<AppendedBlock> AppendMoved(SegmentKind kind, const EncodedBlock& block);
  struct Move {
    ChunkName name;
    Location from;
    Location to;
    // A place to which the index led, but where the chunk is missing or damaged.
    std::optional<Location> misled = {};
  };
  // Makes the index lead to `to` for each name, unless it leads to another valid place by now.
  // These places are not valid: `from` (compared by segment and ordinal), `misled`, and any place
  // in a segment that is removed or soon will be (`gone`).
  Status MoveEntries(std::span<const Move> moves, const std::function<bool(SegmentId)>& gone);
  // Returns a sequence. When the index is durable up to this sequence, all moves so far are durable
  // in it.
  Result<uint64_t> EndSequence();

 private:
  struct Block {
    SegmentKind kind = SegmentKind::kData;
    PlainBlock content;  // its buffer never moves once chunks are in it
    uint64_t ticket = 0;
  };
  using BlockPtr = std::shared_ptr<Block>;
  struct Pending {
    ChunkTag tag = 0;
    uint32_t offset = 0;  // in the block's uncompressed bytes
    uint32_t length = 0;
    BlockPtr block;  // null: the chunk is appended and only remembered
  };
  // An encoded block that waits for its turn to be appended, or for room on the disk.
  struct Ready {
    BlockPtr block;
    EncodedBlock encoded;
    std::optional<AppendedBlock> appended;  // if set, only its index entries are missing
    bool put_failed = false;                // the index had no room for the block's entries
  };
  // How many chunks are remembered after they were appended; some 100 bytes each.
  static constexpr size_t kRememberedChunks = 4096;

  void Work();
  BlockPtr NewBlock(SegmentKind kind, size_t plain_bytes) const;
  // Returns a copy of the block with room for `plain_bytes`, or for the largest size to which it
  // may grow, if that is more. Threads that read the old block keep it alive.
  BlockPtr Grown(const Block& block, size_t plain_bytes) SILTFS_REQUIRES(mutex_);
  // True if the block must be submitted: it is full, and should not or cannot grow.
  bool IsComplete(const Block& block) const SILTFS_REQUIRES(mutex_);
  void Submit(BlockPtr block) SILTFS_REQUIRES(mutex_);
  Status Encode(const Block& block, EncodedBlock& encoded) const;
  // Turns the names of an appended block from pending to remembered. If more than kRememberedChunks
  // names are then remembered, forgets the oldest ones.
  void Remember(const Block& block) SILTFS_REQUIRES(mutex_);
  // Appends encoded blocks in ticket order. Stops at the first block that is not encoded yet or for
  // which the disk has no room.
  void AppendReady() SILTFS_EXCLUDES(mutex_);
  Status AppendAndIndex(Ready& ready);
  // True if no more chunks are accepted until the disk has room.
  bool IsStuck() SILTFS_EXCLUDES(mutex_);
  // Tries to append the blocks that wait for room on the disk. Returns OK, kNoSpace, or the failure
  // of the pipeline.
  Status AppendAgain() SILTFS_EXCLUDES(mutex_);
  // True if the next block in turn is appended and only its index entries are missing. The index
  // must not get later entries first, because it records up to which sequence it is complete.
  bool IsNotIndexed() const SILTFS_REQUIRES(mutex_);
  // Waits until no other thread has the turn to append, and takes the turn. If the next block is
  // appended but not indexed, tries first to put its index entries.
  Status TakeTurn() SILTFS_EXCLUDES(mutex_);
  // Calls `work` while holding the turn to append, and returns its status. Any error except
  // kNoSpace becomes the failure of the pipeline.
  Status InTurn(const std::function<Status()>& work) SILTFS_EXCLUDES(mutex_);

  SegmentLog& log_;
  ChunkIndex& index_;
  const BlockCodec& codec_;
  const Options options_;

  Mutex mutex_;
  CondVar work_;      // a block was submitted, or stopping_
  CondVar progress_;  // a block was appended, or something failed
  std::array<BlockPtr, 2> open_ SILTFS_GUARDED_BY(mutex_);  // by kind
  std::deque<BlockPtr> submitted_ SILTFS_GUARDED_BY(mutex_);
  std::map<uint64_t, Ready> encoded_ SILTFS_GUARDED_BY(mutex_);  // by ticket
  std::unordered_map<ChunkName, Pending> pending_ SILTFS_GUARDED_BY(mutex_);
  size_t bytes_on_the_way_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t next_ticket_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t next_append_ SILTFS_GUARDED_BY(mutex_) = 0;  // blocks with lower tickets are indexed
  bool appending_ SILTFS_GUARDED_BY(mutex_) = false;    // one thread at a time appends
  // The names in pending_ that are only remembered, one vector for each block. The tickets of these
  // blocks are below next_append_.
  std::deque<std::vector<ChunkName>> remembered_ SILTFS_GUARDED_BY(mutex_);
  size_t remembered_chunks_ SILTFS_GUARDED_BY(mutex_) = 0;
  Status failure_ SILTFS_GUARDED_BY(mutex_);
  Status full_ SILTFS_GUARDED_BY(mutex_);  // result of the last append: OK or kNoSpace
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace siltfs
