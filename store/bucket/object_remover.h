// Deletes the objects of contents that were replaced or removed, when the gate allows it and
// nothing uses them any more, and then the tombstones of their segments.
//
// Order: a tombstone is durable before SegmentStore::Remove returns. It is removed after all
// objects of its segment are gone from the bucket and all files of the segment are durably gone
// from the local directory. So a crash at any time leaves either the tombstone or nothing of the
// segment.
//
// Failures: everything that failed is repeated later. What is not done when the store is closed is
// found again at the next start: tombstones in the local directory, replaced contents in the list
// of the bucket.
//
// Thread-safety: every call from any thread. Memory: about 100 bytes for each content.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_names.h"
#include "store/bucket/commit_gate.h"
#include "store/bucket/stop_signal.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

class ObjectRemover {
 public:
  struct Options {
    std::string directory;
    bool thread = true;  // otherwise the caller calls RunOnce
    CommitGate* gate = nullptr;
  };
  // `in_use`: whether the object must stay for now. It is called without a lock. All must outlive
  // this object.
  ObjectRemover(Env& env, ObjectStore& objects, StopSignal& stop, Options options,
                std::function<bool(const ContentId&)> in_use);
  ~ObjectRemover();  // stops

  // The content became useless at this position.
  void Add(const ContentId& id, uint64_t position);
  // The tombstone is durable. The contents of its segment were added before.
  void AddTombstone(const Tombstone& tombstone);
  // A content may no longer be in use, or the gate may allow more.
  void Wake();

  // Deletes in the calling thread what may be deleted now. Ends with the first failure, and returns
  // it. The next run deletes that object last.
  Status RunOnce();
  // Returns when no object is left that may be deleted now, or after `timeout`. Without a thread,
  // does what RunOnce does.
  void DeleteDue(std::chrono::nanoseconds timeout);
  // Contents whose objects are not deleted yet.
  uint64_t waiting() const;
  uint64_t removed() const;  // objects since the start
  // Ends the thread.
  void Stop();

 private:
  // The contents that may be deleted now.
  std::vector<ContentId> Deletable() const SILTFS_EXCLUDES(mutex_);
  // The same, in the order of their deletion.
  std::vector<ContentId> Due() SILTFS_REQUIRES(run_mutex_);
  Status RemoveTombstones();
  void ThreadMain();
  void StartThread() SILTFS_REQUIRES(mutex_);

  Env& env_;
  ObjectStore& objects_;
  StopSignal& stop_;
  const Options options_;
  const std::function<bool(const ContentId&)> in_use_;

  Mutex run_mutex_ SILTFS_ACQUIRED_BEFORE(mutex_);  // held by RunOnce
  // Their last deletion has failed. They come last, so that they do not keep the others.
  std::set<ContentId> failed_ SILTFS_GUARDED_BY(run_mutex_);
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<ContentId, uint64_t> dead_ SILTFS_GUARDED_BY(mutex_);  // with their positions
  std::set<Tombstone> tombstones_ SILTFS_GUARDED_BY(mutex_);
  uint64_t removed_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool due_ SILTFS_GUARDED_BY(mutex_) = false;  // something has changed since the last run
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
