// Brings the commits of a key-value store to a bucket, as log objects and checkpoints.
//
// Each round puts one object: the commits that wait, or a checkpoint. Before its object is put, the
// data that the commits refer to is in the bucket (ShippedData::Upload). A commit counts as shipped
// when its log object is confirmed (bucket_log.h). So the bucket always has a prefix of the
// history.
//
// There is no second local log. Commits that wait are in memory. If they are lost in a crash or are
// dropped, the store itself has them, and a checkpoint brings them to the bucket.
//
// Readers: contents that became useless at a commit are deleted when the bucket has this commit,
// and when a look at the readers that began afterwards shows that each of them has reached it
// (reader_watch.h).
//
// Thread-safety: every call from any thread, but Enqueue and NeedCheckpoint in the order of the
// writes. Memory: ShippingOptions::queue_bytes, one object, and a checkpoint's list of parts.
// Ownership: everything passed by reference must outlive the shipper.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "fs/kv/kv_store.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/checkpoint.h"
#include "fs/shipping/reader_watch.h"
#include "fs/shipping/shipping_options.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/commit_gate.h"
#include "store/env/env.h"

namespace siltfs {

class Shipper final : public CommitGate {
 public:
  // `data` may be null.
  Shipper(Env& env, ObjectStore& objects, ShippingOptions options, ShippedData* data);
  ~Shipper() override;

  // Begins an epoch of the log. `newest` is the sequence of the last local commit, and `epoch` the
  // one in which it was made. kStale if the bucket has commits of another writer that this store
  // does not have.
  Status Begin(uint64_t newest, uint32_t epoch);
  uint32_t epoch() const SILTFS_EXCLUDES(mutex_);
  // The store as of its last commit. No commit may be between its local write and the return of its
  // Enqueue or NeedCheckpoint: a checkpoint would have it before the data of it is known, and a log
  // object after the checkpoint would repeat it.
  using CommittedSnapshot = std::function<std::shared_ptr<const KvSnapshot>()>;
  // Starts the thread. Checkpoints are made of `snapshot`, which waits for commits that are being
  // made. So no caller may hold a lock that `snapshot` takes while it waits for the shipper.
  void Start(CommittedSnapshot snapshot);
  // Ends the thread, after its running call.
  void Stop();

  void SetData(ShippedData* data) { data_ = data; }

  // A commit is locally durable.
  void Enqueue(uint64_t sequence, std::string commit);
  // Only a checkpoint can bring this commit and those before it to the bucket.
  void NeedCheckpoint(uint64_t sequence);

  // Returns when the bucket has this commit. kIoError after the timeout, kReadOnly if fenced,
  // kInterrupted after Stop.
  Status WaitShipped(uint64_t sequence, std::optional<std::chrono::nanoseconds> timeout);
  // The same for a change that background work makes: fails with kInterrupted after BeginClosing.
  Status WaitBeforeChange(uint64_t sequence, std::chrono::nanoseconds timeout);
  // The store is about to be closed: from now on no change of background work waits, and a wait
  // without a timeout has ShippingOptions::close_timeout.
  void BeginClosing() SILTFS_EXCLUDES(mutex_);
  // After Stop: puts an object without commits, by which the lease ends. So another machine need
  // not wait for it. Does nothing if the bucket lacks a commit; then the lease ends by itself.
  Status EndLease();
  // Without a thread: makes rounds until nothing waits, and returns the first failure.
  Status Ship();
  // Asks which commits the readers of the bucket still need, for MayDelete.
  Status LookAtReaders() SILTFS_EXCLUDES(readers_mutex_, mutex_);
  // OK, or kReadOnly if another writer has taken over.
  Status CheckNotFenced() const;

  BucketLag lag() const;

  // CommitGate. Replacements wait in ShippedSegmentStore, so they need not wait again.
  uint64_t Position() override;
  bool MayReplace(uint64_t /*position*/) override { return true; }
  bool MayDelete(uint64_t position) override;

 private:
  struct Waiting {
    uint64_t sequence;
    int64_t time_ns;  // since 1970
    int64_t queued;   // monotonic
    std::string commit;
  };

  Status Wait(uint64_t sequence, std::optional<std::chrono::nanoseconds> timeout, bool is_change)
      SILTFS_EXCLUDES(mutex_);
  void ThreadMain();
  bool LookIsDue() const SILTFS_REQUIRES(mutex_);
  void WaitForWork() SILTFS_REQUIRES(mutex_);
  bool HasWork() const SILTFS_REQUIRES(mutex_);
  bool CheckpointDue() const SILTFS_REQUIRES(mutex_);
  bool HeartbeatDue() const SILTFS_REQUIRES(mutex_);
  Status RunRound() SILTFS_EXCLUDES(round_mutex_, mutex_);
  // Commits beyond `limit` wait on. From now on, the writer counts as alive for `lease`.
  Status ShipCommits(uint64_t limit, std::chrono::nanoseconds lease) SILTFS_REQUIRES(round_mutex_);
  // Ships the commits up to this one that wait in memory, so that readers that follow the log need
  // not load the checkpoint.
  Status ShipCommitsOfCheckpoint(uint64_t sequence) SILTFS_REQUIRES(round_mutex_);
  Status MakeCheckpoint() SILTFS_REQUIRES(round_mutex_);
  // Puts the manifest under the next number whose key is free, and returns its bytes.
  Result<std::string> PutManifest(Manifest& manifest) SILTFS_REQUIRES(round_mutex_);
  // The commits that wait, and this one, reach the bucket only by a checkpoint.
  void DropQueue(uint64_t sequence) SILTFS_REQUIRES(mutex_);
  // The same for commits up to this one, if earlier ones were dropped, so that the log cannot have
  // them.
  void LeaveToCheckpoint(uint64_t sequence) SILTFS_EXCLUDES(mutex_);
  Status Upload() SILTFS_REQUIRES(round_mutex_);
  Result<std::string> Attachment() const;
  // Puts the prepared object, and notes what it has brought to the bucket.
  Status Confirm() SILTFS_REQUIRES(round_mutex_);
  void RemoveOld() SILTFS_REQUIRES(round_mutex_);
  Status RemoveBelow(const std::string& prefix, uint64_t number,
                     uint64_t (*parse)(std::string_view)) SILTFS_REQUIRES(round_mutex_);
  Status RemoveParts() SILTFS_REQUIRES(round_mutex_);
  Status LoadManifests() SILTFS_REQUIRES(round_mutex_);
  void Fence(const Status& cause) SILTFS_EXCLUDES(mutex_);
  void NoteProgress(uint64_t sequence) SILTFS_REQUIRES(mutex_);

  Env& env_;
  ObjectStore& objects_;
  const ShippingOptions options_;
  ShippedData* data_;
  CommittedSnapshot snapshot_;

  // Held for a round.
  Mutex round_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  BucketLog log_ SILTFS_GUARDED_BY(round_mutex_);
  // The two newest checkpoints; number 0: none.
  Manifest newest_manifest_ SILTFS_GUARDED_BY(round_mutex_);
  Manifest older_manifest_ SILTFS_GUARDED_BY(round_mutex_);
  std::optional<Manifest> pending_manifest_ SILTFS_GUARDED_BY(round_mutex_);
  uint64_t pending_last_ SILTFS_GUARDED_BY(round_mutex_) = 0;
  uint64_t pending_bytes_ SILTFS_GUARDED_BY(round_mutex_) = 0;

  Mutex readers_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  ReaderWatch watch_ SILTFS_GUARDED_BY(readers_mutex_);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::deque<Waiting> queue_ SILTFS_GUARDED_BY(mutex_);
  uint64_t queued_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t newest_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t shipped_ SILTFS_GUARDED_BY(mutex_) = 0;
  int64_t shipped_time_ns_ SILTFS_GUARDED_BY(mutex_) = 0;
  // Commits up to here reach the bucket only by a checkpoint.
  uint64_t dropped_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;
  // A checkpoint that is being made, or will be repeated, has all commits that were dropped. So
  // commits wait again.
  bool collecting_ SILTFS_GUARDED_BY(mutex_) = false;
  int64_t dropped_since_ns_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t wanted_ SILTFS_GUARDED_BY(mutex_) = 0;     // a caller waits for this commit
  uint64_t log_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;  // since the last checkpoint
  uint64_t log_objects_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t checkpoint_bytes_ SILTFS_GUARDED_BY(mutex_) = 0;  // of the last checkpoint
  int64_t last_put_ SILTFS_GUARDED_BY(mutex_) = 0;           // monotonic
  int64_t lease_end_ns_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint32_t epoch_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t put_objects_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t made_checkpoints_ SILTFS_GUARDED_BY(mutex_) = 0;
  // Nothing needs contents that became useless up to this commit.
  uint64_t deletable_ SILTFS_GUARDED_BY(mutex_) = 0;
  uint64_t wanted_deletable_ SILTFS_GUARDED_BY(mutex_) = 0;
  ReaderView readers_ SILTFS_GUARDED_BY(mutex_);
  bool looked_ SILTFS_GUARDED_BY(mutex_) = false;               // at least once, with success
  std::optional<int64_t> last_look_ SILTFS_GUARDED_BY(mutex_);  // monotonic
  std::string last_error_ SILTFS_GUARDED_BY(mutex_);
  std::string fence_cause_ SILTFS_GUARDED_BY(mutex_);
  bool fenced_ SILTFS_GUARDED_BY(mutex_) = false;
  bool interrupted_ SILTFS_GUARDED_BY(mutex_) = false;  // by ObjectStore::Interrupt
  // When BeginClosing was called.
  std::optional<std::chrono::steady_clock::time_point> closing_since_ SILTFS_GUARDED_BY(mutex_);
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
