// The growing end of the segment log: the open segment of each stream, to which blocks are
// appended, and the full segments that are being sealed.
//
// Thread-safety: every call from any thread. Only one thread at a time may call Append, because the
// order of these calls is the order of the blocks; BlockPipeline ensures this. Errors: an Append
// that meets a full disk fails with kNoSpace, changes nothing, and may be repeated. Any other
// failure of a segment is permanent, and so is every failed sync, even with kNoSpace. Later calls
// of Append and SyncAll return it as kReadOnly. Durability: SyncAll makes appended blocks durable.
// A thread of the log seals full segments, which also makes them durable, and puts them into the
// SegmentStore. If the disk or the SegmentStore is full, the thread retries until it succeeds.
//
// A full SegmentStore: segments wait in their files. Appends of new chunks go on, so that callers
// that hold locks, and commits, never wait for the SegmentStore. Instead, each operation that
// brings new data first calls WaitForRoom, without a lock. Appends of moved chunks fail with
// kNoSpace.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "fs/records/segment_record.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/segment/segment_store.h"
#include "store/segment/segment_writer.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// Blocks of different streams go into different segments. Moved chunks are kept apart from new
// chunks: they have already outlived other chunks, and are likely to outlive the new ones.
enum class LogStream : uint8_t {
  kData,         // new chunks
  kRecipeNodes,  // new recipe nodes
  kMovedData,    // chunks moved by garbage collection, not to be recompressed
  kMovedNodes,   // recipe nodes moved by garbage collection
};
inline constexpr size_t kLogStreams = 4;
inline LogStream NewStreamOf(SegmentKind kind) {
  return kind == SegmentKind::kData ? LogStream::kData : LogStream::kRecipeNodes;
}
inline LogStream MovedStreamOf(SegmentKind kind) {
  return kind == SegmentKind::kData ? LogStream::kMovedData : LogStream::kMovedNodes;
}
inline SegmentKind KindOf(LogStream stream) {
  return stream == LogStream::kData || stream == LogStream::kMovedData ? SegmentKind::kData
                                                                       : SegmentKind::kRecipeNodes;
}

// Where a block went.
struct AppendedBlock {
  SegmentId segment = kNoSegment;
  BlockPlace place;
  uint64_t sequence = 0;
};

class SegmentLog {
 public:
  struct Options {
    std::string store;  // path; open segments are files in it
    // Gets each sealed segment. Must outlive the log. Null: sealed segments stay in their files.
    SegmentStore* segments = nullptr;
    StoreUuid uuid;
    uint32_t segment_bytes = kMaxSegmentTargetSize;
    SegmentId first_segment = 1;  // ids from here on have never been used
    SegmentId segment_limit = 1;  // ids from here on must be claimed first
    // Durably claims more ids. Returns the new segment_limit.
    std::function<Result<SegmentId>()> claim_segments;
    uint64_t first_sequence = 1;
    uint64_t last_commit = 0;
    // Called without a lock before a segment for moved chunks is created, with its id; a failure
    // prevents the creation. May be empty.
    std::function<Status(SegmentId)> before_moved = {};
    // Called for every sealed segment after it was put into `segments` and its record was
    // committed. From then on the log does not change the segment. May be empty.
    std::function<void(SegmentId, const SegmentRecord&)> retired = {};
  };
  // `sealed` is called on the log's thread after a segment was sealed.
  SegmentLog(Env& env, Options options, std::function<void(SegmentId)> sealed);
  // Ends the thread; unsynced blocks stay unsynced.
  ~SegmentLog();

  // Continues a segment that a clean unmount left unsealed. `moved`: it may have moved chunks, and
  // is continued as a segment for these. Returns the errors of SegmentWriter::Resume. After an
  // error the log is unchanged.
  Status Resume(SegmentId segment, const SegmentRecord& record, bool moved = false);

  // Makes the following SyncAll calls return this record, too, until CommitDone is called. The
  // record belongs to a segment to which the log does not write.
  void Tell(SegmentId segment, const SegmentRecord& record);

  Result<AppendedBlock> Append(LogStream stream, const EncodedBlock& block);
  // Returns a sequence above the sequences of all blocks so far. No block will get this sequence.
  uint64_t TakeSequence();

  // Makes everything appended so far durable. Appends to `changed` the records of the segments that
  // changed since the last completed commit.
  Status SyncAll(std::vector<std::pair<SegmentId, SegmentRecord>>& changed);

  // Call it when commit `number` is durable: the commit has the records that the last SyncAll
  // appended. Blocks that are appended from now on carry this number.
  void CommitDone(uint64_t number);

  // Makes the log read-only. From then on Append and SyncAll fail with a kReadOnly status that has
  // the text of the first failure. Returns this status.
  Status Fail(const Status& status) SILTFS_EXCLUDES(mutex_);
  // OK, or the status that Fail returned.
  Status failure() const;

  // Ends the thread; a segment that is being sealed is finished, others stay unsealed.
  void StopSealing();

  // Removes open segments without a block. A full disk may leave such segments. Call before the
  // store is closed, when no more blocks are appended.
  Status RemoveEmpty();

  // While the SegmentStore is full and several segments wait for room in it, waits until it takes
  // one, at most until it has taken none for `patience`. Then fails with kNoSpace and the cause.
  // Call it without a lock before new data is accepted.
  Status WaitForRoom(std::chrono::nanoseconds patience);
  // From now on WaitForRoom returns at once, with OK: what programs have written already is
  // accepted before the store is closed.
  void EndWaitingForRoom();

  // Waits until the segments that are being sealed now are sealed. Also returns if a retry of
  // sealing finds the disk full, and after a failure or StopSealing.
  void WaitUntilSealed();

  // The writer of a segment that is open or being sealed, or whose seal is not committed yet. Null
  // for all other segments.
  std::shared_ptr<const SegmentWriter> WriterOf(SegmentId segment) const;

  // The growth of the segments that were created or resumed since the log was opened.
  struct Growth {
    uint64_t stored_bytes = 0;
    uint64_t not_recompressed_bytes = 0;  // in segments of the stream kData
    // Of data segments alone:
    uint64_t chunks = 0;
    uint64_t plain_bytes = 0;
  };
  Growth growth() const;
  SegmentId next_segment() const;

 private:
  using WriterPtr = std::shared_ptr<SegmentWriter>;
  // The most segments that are being sealed. Append waits before it would add one more.
  static constexpr size_t kMaxSealing = 2;
  // The most segments that wait while the SegmentStore is full. It bounds their files and memory:
  // each takes about 32 MiB of the disk, and some 100 KiB of memory.
  static constexpr size_t kMaxWaiting = 64;

  // A segment with a newer state than metadata has. All open segments and all segments being sealed
  // are tracked, and some that were just sealed.
  struct Tracked {
    WriterPtr writer;
    LogStream stream;
    SegmentRecord told;       // record of the last SyncAll
    SegmentRecord committed;  // record of the last completed commit
    bool put = false;         // the segment was put into the SegmentStore
  };

  void SealLoop();
  // Seals the segment, unless an earlier call has done this, and puts it into the SegmentStore.
  Status SealAndPut(SegmentWriter& writer);
  // Returns when at most `most` of the segments that were being sealed at the call are not sealed
  // yet. Fails with kNoSpace if a retry of sealing fails with kNoSpace.
  Status WaitToSeal(size_t most) SILTFS_REQUIRES(mutex_);
  // Whether a full segment of this stream may wait for room in the SegmentStore with the others.
  bool MayWait(LogStream stream) const SILTFS_REQUIRES(mutex_);
  // Notes the outcome of an attempt to seal `writer`.
  void NoteSealing(const SegmentWriter& writer, Status sealed) SILTFS_REQUIRES(mutex_);
  Result<WriterPtr> OpenSegment(LogStream stream) SILTFS_EXCLUDES(mutex_);
  static SegmentRecord RecordOf(const SegmentWriter& writer, LogStream stream);

  Env& env_;
  const Options options_;
  const std::function<void(SegmentId)> sealed_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::array<WriterPtr, kLogStreams> open_ SILTFS_GUARDED_BY(mutex_);
  std::vector<WriterPtr> sealing_ SILTFS_GUARDED_BY(mutex_);  // in the order in which they filled
  std::vector<Tracked> tracked_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::pair<SegmentId, SegmentRecord>> to_tell_ SILTFS_GUARDED_BY(mutex_);
  SegmentId next_segment_ SILTFS_GUARDED_BY(mutex_);
  SegmentId segment_limit_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_sequence_ SILTFS_GUARDED_BY(mutex_);
  uint64_t last_commit_ SILTFS_GUARDED_BY(mutex_);
  Growth retired_ SILTFS_GUARDED_BY(mutex_);  // of segments no longer tracked
  Growth resumed_ SILTFS_GUARDED_BY(mutex_);  // size of resumed segments before they were resumed
  Status failure_ SILTFS_GUARDED_BY(mutex_);
  uint64_t seals_begun_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t sealed_count_ SILTFS_GUARDED_BY(mutex_) = 0;
  Status seal_delay_ SILTFS_GUARDED_BY(mutex_);  // kNoSpace: the first in sealing_ has to wait
  // The number of the last attempt to seal that has ended, as counted by seals_begun_.
  uint64_t delayed_seal_ SILTFS_GUARDED_BY(mutex_) = 0;
  // kNoSpace: the SegmentStore has no room for the first in sealing_, which is sealed.
  Status store_full_ SILTFS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point store_full_since_ SILTFS_GUARDED_BY(mutex_);
  bool waiting_ended_ SILTFS_GUARDED_BY(mutex_) = false;
  bool seal_now_ SILTFS_GUARDED_BY(mutex_) = false;  // retry without waiting
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread sealer_;
};

}  // namespace siltfs
