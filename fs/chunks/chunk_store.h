// Puts and gets chunks: the write path from uncompressed bytes to segments with inline
// deduplication, and the read path back.
//
// The store works on parts that it shares with the maintenance jobs (chunk_parts.h). It does not
// know these jobs.
//
// Put stores chunks that are not stored yet (deduplicator.h). New chunks gather in a block. Worker
// threads compress full blocks, append them to the open segment in the order in which they filled,
// and enter their chunks into the index (block_pipeline.h). Memory in the pipeline is bounded; Put
// waits for room.
//
// Thread-safety: every call from any thread. Ownership: ChunkBytes share the block they point into.
// Errors: if SpaceReserve::CheckRoom fails with kNoSpace, Put fails with the same error and accepts
// nothing. Put fails with kInvalidArgument for a chunk of impossible length. If the disk is full
// when accepted chunks are written, these chunks wait in memory for room. PrepareCommit and Finish
// then fail with kNoSpace, and so does Put when memory has no room either. All three may be called
// again. After any other failed write or sync of segments or the index, every Put, PrepareCommit
// and Finish fails with kReadOnly and the first cause; reads still work. Get fails with kCorruption
// for exactly the chunks that are damaged or missing, and never returns wrong bytes. Once a chunk
// is known to be damaged, the next Put of its bytes stores it again under its name. Durability: Put
// gives none. Chunks put before PrepareCommit are durable when PrepareCommit returns OK (the store
// participates in fs/meta's commits). Source: the write and read paths of docs/architecture.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/chunks/chunk_parts.h"
#include "fs/chunks/chunk_reader.h"
#include "fs/chunks/epoch_gate.h"
#include "fs/meta/metadata_store.h"
#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_node.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/lru_cache.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/heap_trimmer.h"
#include "store/segment/base_ref.h"

namespace siltfs {

class Deduplicator;
class Readahead;

// A chunk's uncompressed bytes, kept alive by `owner`.
struct ChunkBytes {
  std::shared_ptr<const void> owner;
  ByteView bytes;
};

class ChunkStore : public CommitParticipant, public NodeStore {
 public:
  // `parts` must outlive the store.
  explicit ChunkStore(ChunkParts& parts);
  ~ChunkStore() override;

  // A thread that puts or reads chunks holds a Use. It takes the Use before it gets the chunks'
  // names. It releases the Use when metadata has the names or the thread no longer needs them. A
  // Use may be held during all other calls except Finish and those that collect garbage.
  class Use : public EpochGate::Pin {
   public:
    explicit Use(ChunkStore& store) : Pin(store.parts_.uses) {}
  };

  // Held by a collection while it waits for all Uses and makes the commit whose references it
  // marks. A thread that copies references from a committed snapshot, and not under the locks of
  // inodes, holds it while it takes its Use and that snapshot. So the snapshot refers to no chunk
  // that the collection finds dead, or the collection waits for this thread. Taken before a Use.
  Mutex& mark_begin() { return parts_.mark_begin; }

  // Stores the chunks, and sets names[i] to the name by which Get finds chunks[i]. Each chunk is 1
  // byte to the superblock's chunk_max long.
  Status Put(std::span<const ByteView> chunks, std::span<ChunkName> names);
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length);
  // For callers that read the chunks of a file in order. The next chunk often lies directly after
  // the last one, and is then found without a look-up. The caller owns the read cursor, which is
  // empty at first and keeps a block in memory.
  using ReadCursor = ChunkReader::ReadCursor;
  Result<ChunkBytes> Get(const ChunkName& name, uint32_t length, ReadCursor& read_cursor);

  // Like Get, but first looks at a place where the chunk may lie (kNoSegment: none is known).
  Result<ChunkBytes> GetAt(const Location& place, const ChunkName& name, uint32_t length,
                           ReadCursor& read_cursor);
  // Finds the places of chunks, as far as it is possible without reading blocks (ChunkReader).
  void Locate(std::span<const ChunkName> names, ChunkReader::Place& last,
              std::span<std::optional<ChunkReader::Place>> places);

  // The block at the place, as it is stored, with its verified payload. Fails if the place is not
  // known to be a block, or is a block no more; Get then finds the chunks.
  Result<EncodedBlock> ReadStored(const ChunkReader::Place& place);

  // Which of these chunks are stored under exactly these names. They stay stored as long as the
  // caller holds the Use that it took before the call. A chunk in a segment that is being collected
  // counts as missing, because a Put would store it again.
  std::vector<bool> Have(std::span<const ChunkName> names, std::span<const uint32_t> lengths);
  // Makes sure that the chunks stay as in Have, and stores them again if needed. kNotFound, with
  // the chunk's name, if one of them is not stored.
  Status Require(std::span<const ChunkName> names, std::span<const uint32_t> lengths,
                 SegmentKind kind);

  // Calls `visit` for each chunk that is kept because a delta needs it, perhaps more than once. The
  // caller holds a Use. Errors: those of fs/segments/segment_bases.h.
  Status ForEachBase(const std::function<Status(const BaseRef&)>& visit);

  // Call when any file is read, even a small one: background work yields to reads.
  void NoteUse() { parts_.activity.NoteUse(); }
  // Counts content that a call has read for, or taken from, a program.
  void CountRead(uint64_t bytes) {
    parts_.traffic.reads.Add(1);
    parts_.traffic.read_bytes.Add(bytes);
  }
  void CountWrite(uint64_t bytes) {
    parts_.traffic.writes.Add(1);
    parts_.traffic.written_bytes.Add(bytes);
  }
  // Call when about this many bytes of file content were removed or replaced. When enough bytes
  // were reported in this way, a garbage collection starts.
  void NoteReleased(uint64_t bytes) { parts_.account.NoteReleased(bytes); }
  // Call after [offset, offset + length) of a file was read; `recipe` describes its first `limit`
  // bytes. A sequential reader will then find the next chunks in memory (readahead.h). Cheap.
  void NoteRead(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset,
                uint64_t length);
  // Call when the file is no longer read.
  void ForgetReads(uint64_t file);
  struct ReadStats {
    uint64_t blocks_decoded = 0;     // since the store was opened
    uint64_t block_hits = 0;         // requests for blocks that were decoded already
    size_t blocks_ahead = 0;         // decoded ahead of sequential readers
    uint64_t segments_searched = 0;  // to find chunks without the index
  };
  ReadStats read_stats() const;
  // Returns when the threads of readahead have no more work.
  void WaitForReadahead();

  // Put and get recipe nodes. Nodes are stored uncompressed, in segments of their own.
  Result<ChunkName> PutNode(ByteView node) override;
  Result<std::shared_ptr<const Bytes>> GetNode(const ChunkName& name, uint32_t node_bytes) override;

  Status PrepareCommit(uint64_t number, std::vector<Mutation>& extra) override;
  void CommitDone(uint64_t number) override;

  // Call it without a lock before a call of Put with new data. While the place of sealed segments
  // is full, it waits as SegmentLog::WaitForRoom, and fails with kNoSpace.
  Status WaitForSegmentRoom(std::chrono::nanoseconds patience) {
    return parts_.log ? parts_.log->WaitForRoom(patience) : Status::Ok();
  }
  // From now on, WaitForSegmentRoom does not wait.
  void EndWaitingForSegmentRoom() {
    if (parts_.log) parts_.log->EndWaitingForRoom();
  }

  // Returns why Put fails permanently; OK as long as Put works.
  Status failure() const;

  ChunkStoreTotals totals() const;

  // Returns when the index has all entries (ReplayState). The functions that put chunks wait for
  // it, too. kInterrupted if the store is closed meanwhile; the error of a failed replay.
  Status WaitUntilIndexed() { return parts_.replay.Wait(); }
  // For a command: kInterrupted soon after `interruptions` has changed and WakeWaitsForIndex was
  // called.
  Status WaitUntilIndexed(const std::atomic<uint64_t>& interruptions) {
    return parts_.replay.WaitUnless(
        [&interruptions, before = interruptions.load()] { return interruptions != before; });
  }
  void WakeWaitsForIndex() { parts_.replay.WakeWaits(); }
  ReplayState::Progress replay_progress() const { return parts_.replay.progress(); }

  // Returns when all segments that were full before the call are sealed, or when sealing fails, for
  // example because the disk is full. After such a failure the next commit fails, too.
  void WaitUntilSealed();

  // The next unused segment id, for a clean unmount.
  SegmentId next_segment_id() const { return parts_.log->next_segment(); }

  // For a clean unmount: makes everything durable, ends the threads, and appends the last metadata
  // changes. The maintenance jobs must be stopped. The changes that recompression owes
  // (Recompressor::TakeOwed) must be appended after those of Finish. After Finish has returned,
  // even with an error, only totals() and next_segment_id() may be called. After kNoSpace, Finish
  // may be called again, too.
  Status Finish(std::vector<Mutation>& extra);
  // Whether Finish has ended the writing of chunks. It must not be called again then, also if it
  // has failed.
  bool finished() const { return parts_.pipeline == nullptr; }

 private:
  Status CheckLengths(SegmentKind kind, std::span<const ByteView> chunks) const;
  void TrimHeap(uint64_t bytes_put);
  Status Put(SegmentKind kind, std::span<const ByteView> chunks, std::span<ChunkName> names);

  ChunkParts& parts_;
  LruCache<ChunkName, const Bytes> nodes_;
  std::unique_ptr<Deduplicator> deduplicator_;  // null when read-only
  std::unique_ptr<Readahead> readahead_;        // null after Finish
  std::atomic<uint64_t> bytes_since_trim_{0};
  HeapTrimmer heap_trimmer_;
};

}  // namespace siltfs
