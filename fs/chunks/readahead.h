// Readahead: its threads read from flash the blocks that a sequential reader will need next, and
// decode them into the decoded-block cache.
//
// Note is called for every read of a large file. Reads of a file, each of which continues where the
// one before ended, are a *stream*. Reads of a stream may overtake each other a little, because the
// kernel sends several at once. A file may have several streams. The recipe of the file is walked
// ahead of the stream's reader, and its chunks are located in batches, without reading blocks. Then
// their blocks are decoded into the cache, and so are the blocks with the bases of chunks that are
// deltas; these do not count against the bounds. The streams take turns.
//
// Bounds: `total_bytes` limits the blocks that are ahead of all readers together. The blocks ahead
// of one stream are limited by `stream_bytes`, and by a fair share of the total. So if the cache
// holds twice the total, a block that was read ahead is still cached when its reader needs it. If a
// reader jumps or ends, the blocks ahead of it still count until Forget is called, or until there
// have been `idle_reads` other reads.
//
// Errors are dropped; the read that needs the block reports them. Thread-safety: every call from
// any thread. No call waits for a device, except WaitUntilIdle. Ownership: borrows nodes and
// reader, which must outlive it. The destructor waits until its threads have finished their current
// work. Threads are started when a stream has its first read in order.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "fs/chunks/chunk_reader.h"
#include "fs/recipe/recipe.h"
#include "fs/recipe/recipe_reader.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Readahead {
 public:
  struct Options {
    size_t threads = 0;               // 0: there is no readahead
    size_t total_bytes = 0;           // of decoded blocks ahead of all readers
    size_t stream_bytes = 0;          // of decoded blocks ahead of one stream
    size_t block_bytes = 160u << 10;  // assumed size of a decoded block; a larger one, as in
                                      // recompressed segments, counts as several
    size_t streams = 64;              // tracked at once
    uint64_t idle_reads = 512;        // a stream ends after this many reads outside it
  };
  Readahead(NodeStore& nodes, ChunkReader& reader, const Options& options);
  ~Readahead();

  // Call after [offset, offset + length) of a file was read. `recipe` describes the file up to
  // `limit`; it is copied when a stream begins.
  void Note(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset, uint64_t length);
  // Call when the file is no longer read.
  void Forget(uint64_t file);

  // Blocks that are ahead of their readers, as counted against the bounds.
  size_t blocks_ahead() const;
  // Returns when the threads of readahead have no more work.
  void WaitUntilIdle();

 private:
  // A block that a stream will need, at this offset in the file.
  struct Ahead {
    uint64_t offset;
    ChunkReader::Place place;  // of the first chunk
    uint32_t last = 0;         // the ordinal of the last chunk that was located in the block
    size_t weight = 1;         // blocks that it counts for
  };
  // Guarded by mutex_, except `walk`, which belongs to the thread that has set `planning`.
  struct Stream {
    uint64_t file = 0;
    uint64_t next = 0;       // where its last read ended
    uint64_t in_order = 0;   // reads that began at `next`
    uint64_t gaps = 0;       // reads that began beyond `next`
    uint64_t last_note = 0;  // number of its last Note
    size_t window = 0;       // most blocks ahead of it; grows with reads in order
    std::deque<Ahead> ahead;
    size_t weight = 0;  // sum of the weights in `ahead`
    size_t asked = 0;   // blocks at the front of `ahead` that threads have taken
    bool planning = false;
    bool at_end = false;
    bool ended = false;  // not in streams_ any more
    struct Walk;
    std::shared_ptr<Walk> walk;  // null until its reads are known to be in order
  };
  using StreamPtr = std::shared_ptr<Stream>;
  using StreamList = std::list<StreamPtr>;

  void Work();
  bool HasWork() const SILTFS_REQUIRES(mutex_);
  // Returns the first stream with work and moves it to the end of streams_; null if no stream has
  // work.
  StreamPtr NextWithWork() SILTFS_REQUIRES(mutex_);
  bool Wanted(const Stream& stream) const { return stream.asked < stream.ahead.size(); }
  bool CanPlan(const Stream& stream) const SILTFS_REQUIRES(mutex_);
  size_t WeightOf(const ChunkReader::Place& place) const;
  size_t AllowedBlocks(const Stream& stream) const SILTFS_REQUIRES(mutex_);
  StreamPtr Find(uint64_t file, uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);
  void Advance(Stream& stream, uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);
  void DropIdle() SILTFS_REQUIRES(mutex_);
  void End(StreamList::iterator stream) SILTFS_REQUIRES(mutex_);
  // Continues the walk at `from`, or at its current place if that is further. Returns the blocks of
  // the chunks that it locates. The blocks in `known` have no weight. Stops when the weights of
  // these blocks reach `blocks`, or when the walk is far enough ahead of the reader.
  std::vector<Ahead> Plan(Stream::Walk& walk, uint64_t from, size_t blocks,
                          std::vector<ChunkReader::Place> known, bool& at_end);

  NodeStore& nodes_;
  ChunkReader& reader_;
  const Options options_;
  const size_t total_blocks_;
  const size_t stream_blocks_;

  mutable Mutex mutex_;
  CondVar work_;
  CondVar idle_;
  StreamList streams_ SILTFS_GUARDED_BY(mutex_);   // in order of turns
  size_t ahead_ SILTFS_GUARDED_BY(mutex_) = 0;     // blocks, of all streams
  size_t reserved_ SILTFS_GUARDED_BY(mutex_) = 0;  // blocks, by threads that plan
  size_t walked_ SILTFS_GUARDED_BY(mutex_) = 0;    // streams that have a walk
  uint64_t notes_ SILTFS_GUARDED_BY(mutex_) = 0;
  size_t busy_ SILTFS_GUARDED_BY(mutex_) = 0;  // threads that work
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
