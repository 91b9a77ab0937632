// A store in a bucket that a writer on another machine changes: its newest state, for reading
// (docs/bucket.md#readers).
//
// The local directory has the metadata, the bytes of open segments, a cache of sealed ones, and the
// segment guide. Nothing in it is needed again: each Start restores the metadata from the newest
// checkpoint and the log behind it.
//
// A poll reads the new objects of the log, applies their commits to the local metadata, and brings
// what the last of these commits refers to. Then it opens this state, shows it, and tells the
// kernel what to forget. A state is opened over a snapshot of the metadata, so commits that are
// applied meanwhile are not visible. Calls that have begun go on with the state in which they
// began, which lives as long as they do. So each call sees exactly one commit, and commits never go
// back.
//
// If the bytes of a commit are gone, later commits do not need them. The poll fails then, the old
// state stays, and the next poll tries a later commit.
//
// The writer deletes nothing that a state needs which is shown (reader_claim.h). If the claim has
// lapsed, the poll makes a new one, and shows the newest state.
//
// Thread-safety: every call from any thread, but Start and Stop from one. Memory: two states for
// moments, each with its caches. Ownership: `env`, `objects` and the options' functions must
// outlive the store. Errors: those of RestoreKvStore, OpenState, Env and ObjectStore. Durability:
// none.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fs/follow/followed_segments.h"
#include "fs/follow/kernel_changes.h"
#include "fs/guide/segment_guide.h"
#include "fs/inodes/lookup_counts.h"
#include "fs/interface/file_system.h"
#include "fs/kv/kv_store.h"
#include "fs/shipping/log_follower.h"
#include "fs/shipping/reader_claim.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/env/env.h"
#include "store/object/object_store.h"
#include "store/superblock/superblock.h"

namespace siltfs {

struct FollowOptions {
  std::string directory;  // made if it is missing; belongs to this class
  // For the states: snapshot_directory, capacity_bytes, report, interrupted and the sizes of
  // caches.
  FileSystemOptions state;
  // `directory` and `read_only` are set by the store.
  BucketOptions bucket;
  ReaderObject reader;  // id, age and host
  // Between polls.
  std::chrono::nanoseconds interval = std::chrono::seconds(5);
  // Nanoseconds that go on while the machine is suspended. Empty: those of a clock of the system.
  std::function<int64_t()> clock;
  // False, for tests: no thread; the caller calls Poll.
  bool background = true;
};

struct FollowStatus {
  uint64_t commit = 0;        // that is shown
  int64_t commit_ns = 0;      // when it was made, since 1970
  uint64_t newest = 0;        // the last commit in the bucket, as of the last poll
  double behind_seconds = 0;  // since the last moment at which the newest commit was shown
  uint32_t epoch = 0;         // of the writer of the shown commit
  uint64_t states = 0;        // that were shown so far
  uint64_t restarts = 0;      // from a checkpoint, since the start
  bool lapsed = false;        // the writer may have given this reader up
  std::string last_error;     // of the last poll; empty if it succeeded
};

class FollowedStore {
 public:
  // One state, and what uses it.
  struct State {
    std::shared_ptr<KvStore> kv;  // outlives the snapshot
    std::shared_ptr<const KvSnapshot> metadata;
    std::shared_ptr<SegmentView> segments;
    std::unique_ptr<FileSystem> file_system;
    uint64_t sequence = 0;
    int64_t time_ns = 0;
    uint32_t epoch = 0;
  };
  using StatePtr = std::shared_ptr<State>;

  FollowedStore(Env& env, ObjectStore& objects, FollowOptions options);
  ~FollowedStore();

  // Shows the newest state, and begins to follow.
  Status Start();
  // Ends the thread, and tells the writer that this reader is gone.
  void Stop();

  // The state that is shown. Not null after Start.
  StatePtr state() const SILTFS_EXCLUDES(mutex_);
  // Shows the newest state now. Returns what has prevented that.
  Status Poll() SILTFS_EXCLUDES(poll_mutex_, mutex_);
  // Call it when a read of `state` has failed. True if another state is shown by now: then repeat
  // the call. If the writer has given this reader up, this waits a few seconds for the newest
  // state.
  bool Recover(const StatePtr& state) SILTFS_EXCLUDES(poll_mutex_, mutex_);

  // What the kernel has looked up.
  LookupCounts& lookups() { return lookups_; }
  // Null: the kernel need not be told. The cache must outlive its use, which ends with the next
  // call.
  void SetKernelCache(KernelCache* cache) SILTFS_EXCLUDES(cache_mutex_);

  FollowStatus status() const SILTFS_EXCLUDES(mutex_);
  BucketStatus segments() const { return bucket_.GetStatus(); }
  const FollowOptions& options() const { return options_; }
  // Ends requests that wait; for the end of the process.
  void Interrupt();

 private:
  Status PollNow() SILTFS_REQUIRES(poll_mutex_);
  // Restores the metadata from the newest checkpoint.
  Status Restore() SILTFS_REQUIRES(poll_mutex_);
  Status Apply(const std::vector<Mutation>& mutations) SILTFS_REQUIRES(poll_mutex_);
  // Shows the state of the metadata.
  Status Show() SILTFS_REQUIRES(poll_mutex_);
  // Appends to `gone` the segments that the metadata no longer has.
  Status BringSegments(const KvSnapshot& metadata, std::vector<SegmentId>& gone)
      SILTFS_REQUIRES(poll_mutex_);
  Status CoverSealed(SegmentView& view, const Superblock& superblock) SILTFS_REQUIRES(poll_mutex_);
  void NoteSnapshots(const StatePtr& before, const State& after) SILTFS_REQUIRES(poll_mutex_);
  void TellKernel(bool again) SILTFS_REQUIRES(poll_mutex_) SILTFS_EXCLUDES(cache_mutex_);
  // Drops what no open state needs, and says so to the writer.
  Status Release() SILTFS_REQUIRES(poll_mutex_);
  Status RemoveOldMetadata() SILTFS_REQUIRES(poll_mutex_);
  void ThreadMain();
  std::string MetadataDirectory(uint64_t number) const;

  Env& env_;
  ObjectStore& objects_;
  const FollowOptions options_;
  std::unique_ptr<FileLock> lock_;
  BucketSegmentStore bucket_;
  LookupCounts lookups_;

  Mutex poll_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);
  FollowedSegments segments_ SILTFS_GUARDED_BY(poll_mutex_);
  ReaderClaim claim_;
  std::unique_ptr<SegmentGuide> guide_;  // before the states, which use it
  std::shared_ptr<KvStore> kv_ SILTFS_GUARDED_BY(poll_mutex_);
  uint64_t metadata_number_ SILTFS_GUARDED_BY(poll_mutex_) = 0;
  std::map<uint64_t, std::weak_ptr<KvStore>> metadata_ SILTFS_GUARDED_BY(poll_mutex_);
  std::optional<LogFollower> log_ SILTFS_GUARDED_BY(poll_mutex_);
  std::optional<KernelChanges> changes_ SILTFS_GUARDED_BY(poll_mutex_);
  // Segments whose records have changed since the last Show. Those without a record are gone.
  std::set<SegmentId> changed_ SILTFS_GUARDED_BY(poll_mutex_);
  std::set<SegmentId> uncovered_ SILTFS_GUARDED_BY(poll_mutex_);  // sealed, and not in the guide
  std::set<SegmentId> gone_ SILTFS_GUARDED_BY(poll_mutex_);       // an older state may need them
  std::vector<std::weak_ptr<State>> older_ SILTFS_GUARDED_BY(poll_mutex_);
  bool must_show_ SILTFS_GUARDED_BY(poll_mutex_) = false;

  mutable Mutex mutex_;
  CondVar changed_state_;
  StatePtr state_ SILTFS_GUARDED_BY(mutex_);
  FollowStatus status_ SILTFS_GUARDED_BY(mutex_);
  int64_t current_at_ns_ SILTFS_GUARDED_BY(mutex_) = 0;  // monotonic
  bool suspicious_ SILTFS_GUARDED_BY(mutex_) = false;  // the next poll is due, and tries the claim
  uint64_t polls_ SILTFS_GUARDED_BY(mutex_) = 0;       // that have ended
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;

  Mutex cache_mutex_;
  KernelCache* cache_ SILTFS_GUARDED_BY(cache_mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace siltfs
