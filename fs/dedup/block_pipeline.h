// From chunks to index entries: collects new chunks in a block of each kind, compresses full blocks
// on worker threads, appends them to the segment log in the order in which they filled, and enters
// their chunks into the index.
//
// A larger block takes less space, but costs more to read a chunk from. While so little is queued
// that the workers would soon wait, a full block keeps growing.
//
// A chunk is *pending* from Add until its index entry is made; until then it is found here by name
// and tag, and its bytes can be read here. Its name and tag are remembered for a while longer, for
// threads that looked into the index just before the entry was made: two chunks with one name and
// different bytes (SHA-1 collisions) must never both be added under it.
//
// Thread-safety: every call from any thread. Memory: at most `capacity_bytes` of uncompressed bytes
// (and about as many compressed ones) beside the open blocks; Add waits for room. Errors: on a full
// disk blocks stay queued. Every Flush, and every Add that would wait for room, tries again and
// fails with kNoSpace if the disk is still full. The first other failure to compress, append or
// index ends the log (SegmentLog::Fail); every waiting and every later call returns that failure.
// Pending chunks stay readable. Durability: none; see SegmentLog::SyncAll.
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

#include "fs/dedup/segment_log.h"
#include "index/chunk_index.h"
#include "store/base/thread_annotations.h"
#include "store/segment/block.h"
#include "store/segment/block_codec.h"

namespace siltfs {

class BlockPipeline {
 public:
  struct Options {
    size_t worker_threads = 2;
    size_t capacity_bytes = 8u << 20;
    size_t block_plain_bytes = 128u << 10;  // a block is full when it holds this much
    // A data block grows to this size while at most this much per worker is queued. A value no
    // larger than block_plain_bytes turns growth off; which chunks share a block then does not
    // depend on the pace of threads.
    size_t idle_block_plain_bytes = 0;
    size_t chunk_max = 64u << 10;
    Compression compression;  // of data blocks; recipe nodes stay uncompressed
  };
  BlockPipeline(SegmentLog& log, ChunkIndex& index, const BlockCodec& codec,
                const Options& options);
  // Ends the workers; pending chunks are lost. Call Flush first.
  ~BlockPipeline();

  enum class Outcome : uint8_t {
    kAdded,      // it was new
    kDuplicate,  // a pending chunk has this name and tag
    kCollision,  // a pending chunk has this name and another tag
    kLookAgain,  // too much was appended since `looked_at`: the index may know the name by now
  };

  // A point between two blocks. The index has everything that was appended before it.
  uint64_t Now();
  // Adds a chunk that was not in the store at `looked_at`, unless it is pending. Copies the bytes,
  // 1 to kMaxBlockPlainBytes. kNoSpace adds nothing.
  Result<Outcome> Add(SegmentKind kind, const ChunkRecord& record, ByteView bytes,
                      uint64_t looked_at);

  // The tag of the chunk of this name, if it is pending or remembered.
  std::optional<ChunkTag> FindPending(const ChunkName& name);
  struct PendingBytes {
    std::shared_ptr<const void> owner;
    ByteView bytes;
  };
  std::optional<PendingBytes> GetPending(const ChunkName& name);

  // Returns when everything added before the call is appended and indexed. After kNoSpace the rest
  // stays queued for the next Flush.
  Status Flush();

  // Forgets chunks that are only remembered; later look-ups must ask the index.
  void ForgetAppended();

  // --- For chunks that the index has and that are moved (relocator.h). They take turns with added
  // blocks and are never pending. Appends a block beside the new ones, in a stream of its own.
  Result<AppendedBlock> AppendMoved(SegmentKind kind, const EncodedBlock& block);
  struct Move {
    ChunkName name;
    Location from;
    Location to;
    // The index led here, but the chunk is not here, or is damaged.
    std::optional<Location> misled = {};
  };
  // Makes the index lead to `to` for each name for which it still leads to `from` (segment and
  // ordinal), nowhere, to `misled`, or into a segment that is gone or soon will be (`gone`).
  Status MoveEntries(std::span<const Move> moves, const std::function<bool(SegmentId)>& gone);
  // The sequence up to which the index must be durable so that all moves so far are durable in it.
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
    BlockPtr block;  // null when it is only remembered
  };
  // An encoded block that waits for its turn to be appended, or for room on the disk.
  struct Ready {
    BlockPtr block;
    EncodedBlock encoded;
    std::optional<AppendedBlock> appended;  // set: only its entries are missing
    bool put_failed = false;                // the index had no room for them
  };
  // How many chunks are remembered after they were appended; some 100 bytes each.
  static constexpr size_t kRememberedChunks = 4096;

  void Work();
  BlockPtr NewBlock(SegmentKind kind, size_t plain_bytes) const;
  // A copy of the block with room for so many bytes, or for the largest size it may grow to.
  // Readers of the old block keep it.
  BlockPtr Grown(const Block& block, size_t plain_bytes) SILTFS_REQUIRES(mutex_);
  // It must be submitted: it is full, and should not or cannot grow.
  bool IsComplete(const Block& block) const SILTFS_REQUIRES(mutex_);
  void Submit(BlockPtr block) SILTFS_REQUIRES(mutex_);
  Status Encode(const Block& block, EncodedBlock& encoded) const;
  // Turns the names of an appended block from pending to remembered; forgets the oldest.
  void Remember(const Block& block) SILTFS_REQUIRES(mutex_);
  // Appends, in ticket order, every encoded block that is next in turn, as far as there is room.
  void AppendReady() SILTFS_EXCLUDES(mutex_);
  Status AppendAndIndex(Ready& ready);
  // No more chunks are accepted until the disk has room.
  bool IsStuck() SILTFS_EXCLUDES(mutex_);
  // Tries to append the blocks that wait for room on the disk: OK or kNoSpace, or the failure.
  Status AppendAgain() SILTFS_EXCLUDES(mutex_);
  // The next block in turn is appended, and only its entries are missing. The index must not get
  // later entries before them: it records up to which sequence it is complete.
  bool IsNotIndexed() const SILTFS_REQUIRES(mutex_);
  // Waits until no other thread has the turn to append, and takes it.
  Status TakeTurn() SILTFS_EXCLUDES(mutex_);
  // Calls `work` while holding the turn to append. kNoSpace from it changes nothing.
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
  uint64_t next_append_ SILTFS_GUARDED_BY(mutex_) = 0;  // tickets below are done
  bool appending_ SILTFS_GUARDED_BY(mutex_) = false;    // one thread at a time appends
  // The names in pending_ that are only remembered, block by block; of tickets below next_append_.
  std::deque<std::vector<ChunkName>> remembered_ SILTFS_GUARDED_BY(mutex_);
  size_t remembered_chunks_ SILTFS_GUARDED_BY(mutex_) = 0;
  Status failure_ SILTFS_GUARDED_BY(mutex_);
  Status full_ SILTFS_GUARDED_BY(mutex_);  // result of the last append: OK or kNoSpace
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace siltfs
