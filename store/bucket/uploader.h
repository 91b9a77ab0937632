// Uploads the contents that wait in the local cache, oldest first, with a bounded number of
// threads. Each thread streams one content.
//
// A content is uploaded when the bucket has confirmed its object. If an answer is lost, or if an
// earlier run may have uploaded the content, the thread reads the object's trailer and compares the
// checksums. A Put never replaces an intact object.
//
// Failures: the content goes on waiting, and its upload is repeated with growing pauses until it
// succeeds or is cancelled. Status() shows the last failure.
//
// Thread-safety: every call from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/bucket/block_fetcher.h"
#include "store/bucket/commit_gate.h"
#include "store/bucket/local_cache.h"
#include "store/bucket/stop_signal.h"
#include "store/object/object_store.h"

namespace siltfs {

struct UploadStatus {
  uint64_t waiting = 0;  // contents, with those that are being uploaded
  uint64_t waiting_bytes = 0;
  uint64_t uploading = 0;
  uint64_t behind_seconds = 0;  // since the oldest waiting content was put (or found at the start)
  uint64_t uploaded = 0;        // since the start
  uint64_t uploaded_bytes = 0;
  uint64_t failures = 0;
  std::string last_error;  // empty if the last attempt succeeded
};

class Uploader {
 public:
  struct Options {
    uint32_t threads = 0;
    CommitGate* gate = nullptr;
  };
  // `ended` is called, without a lock, when the Uploader has let go of a content. All must outlive
  // this object.
  Uploader(ObjectStore& objects, LocalCache& cache, BlockFetcher& fetcher, StopSignal& stop,
           Options options, std::function<void(const ContentId&)> ended);
  ~Uploader();  // stops

  // The content waits in the cache. `may_exist`: the bucket may have it. `position`: it must not be
  // uploaded before the gate lets a replacement of this position pass.
  void Add(const SegmentContent& content, bool may_exist, std::optional<uint64_t> position);
  // What is known about a content that was cancelled.
  enum class Sent : uint8_t {
    kNever,  // the bucket does not have it
    kMaybe,  // the bucket may have it or get it, but this was never confirmed
    kYes,    // it was uploaded, or never added
  };
  // Forgets the content. If an attempt is running: waits for its end if `wait`, otherwise Holds is
  // true until then.
  Sent Cancel(const ContentId& id, bool wait);
  // Whether the content waits or is being uploaded.
  bool Holds(const ContentId& id) const;
  bool HoldsSegment(SegmentId id) const;

  // Makes one attempt in the calling thread. False if no content is due.
  bool RunOne();
  // Returns when all contents that were added before the call are in the bucket or cancelled.
  // kIoError, with the last failure, after `timeout` or Stop.
  Status WaitForUploads(std::chrono::nanoseconds timeout);
  // The gate may let more contents pass.
  void Wake();
  // Ends the threads, after their running attempts.
  void Stop();

  UploadStatus GetStatus() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    SegmentContent content;
    uint64_t number = 0;  // in the order of Add
    std::optional<uint64_t> position;
    std::chrono::steady_clock::time_point since;
    bool may_exist = false;
    bool running = false;
    bool cancelled = false;
    uint32_t failures = 0;
    Clock::time_point due{};  // not before
  };

  // The oldest content that is due; it is running now.
  std::optional<Job> Take(Clock::time_point now) SILTFS_REQUIRES(mutex_);
  static Status OtherContent(const std::string& key);
  Result<PutCondition> ReplaceDamaged(const SegmentContent& content, const std::string& key);
  Status Upload(const Job& job);
  // Whether the bucket has this content. kAlreadyExists: it has another one under its key.
  Result<bool> IsThere(const BlockChecksums& checksums);
  bool Run(const Job& job);  // whether the attempt succeeded
  void ThreadMain();

  ObjectStore& objects_;
  LocalCache& cache_;
  BlockFetcher& fetcher_;
  StopSignal& stop_;
  const Options options_;
  const std::function<void(const ContentId&)> ended_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<ContentId, Job> jobs_ SILTFS_GUARDED_BY(mutex_);
  std::map<uint64_t, ContentId> order_ SILTFS_GUARDED_BY(mutex_);
  uint64_t next_number_ SILTFS_GUARDED_BY(mutex_) = 0;
  UploadStatus status_ SILTFS_GUARDED_BY(mutex_);
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
