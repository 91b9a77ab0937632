// Puts the entries of a store's segments into its index in the background, after a mount that found
// the index empty or far behind. Reads are served meanwhile: the reader finds chunks with the
// segment guide. Chunks are stored only after the replay (ReplayState), and garbage collection and
// recompression begin only then.
//
// If the process is killed meanwhile, the next mount continues at the index's durable sequence, as
// after any crash. If the store is closed meanwhile, a mark says that the index lacks entries
// (fs/open/store_index.h), and the next mount continues as well.
//
// Thread-safety: Start and Stop from one thread. Ownership: borrows the parts, which must outlive
// it. Memory: that of ReplayBlocks. Errors: while a bucket does not answer, the replay waits. Any
// other failure makes the store read-only; it is reported, and every Put returns it. Damaged blocks
// are put on the damage list, durably, before the entries of their segment.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fs/chunks/chunk_parts.h"
#include "fs/recovery/block_replay.h"

namespace siltfs {

class IndexReplay {
 public:
  struct Options {
    StoreIdentity identity;
    std::vector<SegmentId> secondary;  // as StoreRecords::secondary
    // Called when the index has all entries; a failure counts as a failure of the replay.
    std::function<Status()> finish;
    // Makes the mark of an unfinished rebuild.
    std::function<Status()> mark_unfinished;
    // Called after each segment, with the number of segments that are done. May be empty.
    std::function<void(uint64_t done, uint64_t total)> on_progress;
  };
  // `records`: the store's segments. Begins the state parts.replay.
  IndexReplay(ChunkParts& parts, SegmentRecords records, Options options);
  ~IndexReplay();
  IndexReplay(const IndexReplay&) = delete;
  IndexReplay& operator=(const IndexReplay&) = delete;

  // Starts the thread. It calls `then` if the replay succeeds.
  void Start(std::function<void()> then);
  // Interrupts the replay, and returns when the thread has ended. Waiting calls of Put then fail
  // with kInterrupted.
  void Stop();
  // Makes the mark if the replay has not succeeded. Call it after Stop, before the store counts as
  // closed.
  Status MarkIfUnfinished() const;

 private:
  void Run();
  Status Replay();
  Status Interrupted() const;

  ChunkParts& parts_;
  SegmentRecords records_;
  const Options options_;
  std::function<void()> then_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

}  // namespace siltfs
