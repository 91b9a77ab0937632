// Readahead: the blocks that a sequential reader will want next are read from flash and decoded by
// threads of its own, into the decoded-block cache, before he asks.
//
// It is told of every read of a large file. Reads of a file that go on where the last one ended are
// a *stream*; reads of a stream may overtake each other a little, as the kernel sends several at
// once, and a file may have several streams. A stream's recipe is walked ahead of its reader, its
// chunks are located (in batches, without reading blocks), and the blocks they lie in are brought
// in, in turns with those of the other streams.
//
// Bounds: blocks that are ahead of all readers together count for `total_bytes`, those of one
// stream for `stream_bytes` and its fair share of the total. So as long as the cache holds twice
// the total what was brought in is still there when its reader comes. What lies ahead of a reader
// who jumped, or has gone, counts no more once he is known to be gone: Forget, or `idle_reads`
// reads by others.
//
// Failures are of no account: whoever reads the chunk meets them. Thread-safety: every call from
// any thread; none waits for a device. Ownership: borrows nodes and reader, which must outlive it;
// the destructor waits for what its threads are about. Threads are started with the first stream.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "fs/dedup/chunk_reader.h"
#include "fs/meta/recipe.h"
#include "fs/meta/recipe_reader.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Readahead {
 public:
  struct Options {
    size_t threads = 2;               // 0: there is no readahead
    size_t total_bytes = 6u << 20;    // of decoded blocks ahead of all readers
    size_t stream_bytes = 4u << 20;   // of one of them
    size_t block_bytes = 160u << 10;  // what a decoded block is taken for; a larger one, as
                                      // settled segments have, counts for several
    size_t streams = 64;              // told apart
    uint64_t idle_reads = 512;        // by others, after which a stream is taken for ended
  };
  Readahead(NodeStore& nodes, ChunkReader& reader, const Options& options);
  ~Readahead();

  // [offset, offset + length) of a file were read. `recipe` is what the file holds up to `limit`;
  // it is copied when a stream begins.
  void Note(uint64_t file, const Recipe& recipe, uint64_t limit, uint64_t offset, uint64_t length);
  // Nobody reads the file any more.
  void Forget(uint64_t file);

  // Blocks that are ahead of their readers, as counted against the bounds.
  size_t blocks_ahead() const;
  // Returns when all is brought in that should be by now.
  void WaitUntilIdle();

 private:
  // A block that a stream will come to, at this offset in the file.
  struct Ahead {
    uint64_t offset;
    ChunkReader::Place place;
    size_t weight = 1;  // blocks that it counts for
  };
  // Guarded by mutex_, but for `walk`, which belongs to whoever has set `planning`.
  struct Stream {
    uint64_t file = 0;
    uint64_t next = 0;       // where its last read ended
    uint64_t in_order = 0;   // reads that began just there
    uint64_t gaps = 0;       // reads that began behind it
    uint64_t last_note = 0;  // number of the Note
    size_t window = 0;       // blocks it may have ahead; grows as it goes on
    std::deque<Ahead> ahead;
    size_t weight = 0;  // of all that is ahead
    size_t asked = 0;   // of `ahead`, what some thread has taken on
    bool planning = false;
    bool at_end = false;
    bool ended = false;  // not in streams_ any more
    struct Walk;
    std::shared_ptr<Walk> walk;  // null until it is known to be one
  };
  using StreamPtr = std::shared_ptr<Stream>;
  using StreamList = std::list<StreamPtr>;

  void Work();
  bool HasWork() const SILTFS_REQUIRES(mutex_);
  // Null if there is none; the others have their turn before it comes again.
  StreamPtr NextWithWork() SILTFS_REQUIRES(mutex_);
  bool Wanted(const Stream& stream) const { return stream.asked < stream.ahead.size(); }
  bool CanPlan(const Stream& stream) const SILTFS_REQUIRES(mutex_);
  size_t WeightOf(const ChunkReader::Place& place) const;
  size_t AllowedBlocks(const Stream& stream) const SILTFS_REQUIRES(mutex_);
  StreamPtr Find(uint64_t file, uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);
  void Advance(Stream& stream, uint64_t offset, uint64_t length) SILTFS_REQUIRES(mutex_);
  void DropIdle() SILTFS_REQUIRES(mutex_);
  void End(StreamList::iterator stream) SILTFS_REQUIRES(mutex_);
  // Walks on from `from` (or where it stood, if that is further) until it has met `blocks` blocks
  // that are not in `known`, or has come far enough.
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
  StreamList streams_ SILTFS_GUARDED_BY(mutex_);   // whose turn is next, first
  size_t ahead_ SILTFS_GUARDED_BY(mutex_) = 0;     // blocks, of all of them
  size_t reserved_ SILTFS_GUARDED_BY(mutex_) = 0;  // blocks, by those who plan
  size_t walked_ SILTFS_GUARDED_BY(mutex_) = 0;    // streams that have a walk
  uint64_t notes_ SILTFS_GUARDED_BY(mutex_) = 0;
  size_t busy_ SILTFS_GUARDED_BY(mutex_) = 0;  // threads
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
