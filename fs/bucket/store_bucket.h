// The bucket of one store: its objects, and the SegmentStore in which its sealed segments are.
//
//   STORE/bucket          which bucket it is                 (bucket_config.h)
//   STORE/bucket.cache    local files of sealed segments     (store/bucket)
//   STORE/bucket.writer   the random id of this copy of the store, as a writer of the log
//   STORE/bucket.usage    the requests over the life of the store (bucket_usage.h)
//   PREFIX/siltfs         an object with the UUID of the store, which owns the prefix
//
// A prefix belongs to one store. mkfs claims it, by putting the object with the UUID if no object
// has the prefix. Each opening compares the UUID, so that a wrong address never mixes two stores.
//
// Thread-safety: every call from any thread. Ownership: `env` must outlive the bucket; the bucket
// must outlive the file system or check to which segments() was given. The destructor gives up
// uploads that run; the next opening for writing goes on with them.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fs/bucket/bucket_config.h"
#include "fs/bucket/bucket_owner.h"
#include "fs/bucket/bucket_prices.h"
#include "fs/bucket/bucket_usage.h"
#include "fs/bucket/interruption_poll.h"
#include "fs/kv/kv_store.h"
#include "fs/records/position_record.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/bucket_session.h"
#include "fs/shipping/restore_store.h"
#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/object/monitored_object_store.h"
#include "store/object/object_store.h"
#include "store/segment/store_uuid.h"

namespace siltfs {

struct StoreBucketOptions {
  // How long a read repeats its requests while the bucket fails.
  std::chrono::nanoseconds bucket_timeout = std::chrono::minutes(2);
  // Whether the store is opened for writing: then its commits are shipped to the bucket, and the
  // options of FileSystem must have Layer(). Otherwise only its segments are read.
  bool ships = false;
  // sync=bucket: calls that promise durability wait until the bucket has everything.
  bool wait_for_bucket = false;
  // Begins to ship although another machine's lease has not ended.
  bool take_over = false;
  // Called once, from any thread, when another machine has taken over. May be empty.
  std::function<void(const Status&)> fenced = {};
  // May be empty. Polled by a thread until EndOpening. When it returns true, requests end at once.
  std::function<bool()> interrupted = {};
};

struct StoreBucketStats {
  std::string address;
  ObjectStoreCounters requests;  // of this process
  BucketUsage total;             // over the life of the store
  ObjectStoreHealth health;
  BucketStatus segments;
  // Of the commits. If they are not shipped by this process: what the bucket and the metadata had
  // when the store was opened. Empty if the metadata was not read.
  std::optional<BucketLag> lag;
  std::optional<BucketPrices> prices;  // empty: the user has given none
};

class StoreBucket {
 public:
  // Opens the bucket of the store; null if its segments are in its directory. kNotFound if the
  // bucket or the object with the UUID is missing; kInvalidArgument if the prefix belongs to
  // another store; kInUse if another machine ships to it; kIoError if the bucket does not answer;
  // those of S3ObjectStore::Open and ReadSuperblock.
  static Result<std::unique_ptr<StoreBucket>> Open(Env& env, const std::string& store,
                                                   const StoreBucketOptions& options);
  // The same over objects that are given, for tests.
  static Result<std::unique_ptr<StoreBucket>> OpenOver(std::unique_ptr<ObjectStore> objects,
                                                       Env& env, const std::string& store,
                                                       const BucketConfig& config,
                                                       const StoreBucketOptions& options);
  ~StoreBucket();

  SegmentStore& segments();
  // FileSystemOptions::metadata_layer. If the commits are not shipped, it only learns which commits
  // the metadata has.
  std::function<Result<std::unique_ptr<KvStore>>(std::unique_ptr<KvStore>)> Layer();
  // The store is open, or its opening has failed. Returns what a failure means: kInterrupted if
  // StoreBucketOptions::interrupted has ended requests, else `outcome`.
  Status EndOpening(Status outcome);
  // For changes that are made without the log, such as a repair. kStale if another copy of the
  // store is the last writer: its segments would pass for damage of this copy, and be changed.
  Status CheckIsLastWriter() const;
  // Returns when the bucket has everything that the store has made durable, or with the failure of
  // `check`, which is called some times a second. kReadOnly if another machine has taken over;
  // kUnsupported if the commits are not shipped. While the bucket fails, this waits.
  Status AwaitAll(const std::function<Status()>& check);
  // The store is about to be closed; call it before background jobs are stopped. If the bucket does
  // not answer for ten seconds, reads of it fail from then on, and later all other requests, too.
  // Without it, a job that waits for the bucket delays the end by `bucket_timeout`. Further calls
  // have no effect.
  void BeginClosing() SILTFS_EXCLUDES(closing_mutex_);
  StoreBucketStats Stats() const;

 private:
  StoreBucket(std::unique_ptr<ObjectStore> objects, Env& env, const std::string& store,
              const BucketConfig& config, const StoreBucketOptions& options);

  Status Connect(Env& env, const StoreUuid& uuid, const BucketConfig& config,
                 const StoreBucketOptions& options);
  void Interrupt();
  // The store is locked now: kStale if `siltfs tune` has changed the bucket since it was opened.
  Status CheckUnchanged() const;
  // True when no request has transferred anything for `patience`, since the call of this function.
  std::function<bool()> SilentFor(std::chrono::nanoseconds patience) const;
  BucketLag LagOfReader(const PositionRecord& local) const;

  const std::string store_;
  const std::unique_ptr<MonitoredObjectStore> objects_;
  const BucketConfig config_;
  Env& env_;
  BucketUsageRecorder usage_;
  // If the store is only read: the end of the log, and whether this copy has written it.
  LogEnd end_;
  bool is_own_log_ = false;
  mutable Mutex mutex_;
  std::optional<PositionRecord> position_ SILTFS_GUARDED_BY(mutex_);  // of the metadata
  const std::chrono::nanoseconds patience_at_close_;
  const bool wait_for_bucket_;
  // One of them.
  std::unique_ptr<BucketSegmentStore> segments_;
  std::unique_ptr<BucketSession> session_;
  // Polls while the store is opened.
  std::atomic<bool> was_interrupted_ = false;
  std::optional<InterruptionPoll> poll_;
  // Since BeginClosing.
  Mutex closing_mutex_;
  std::optional<InterruptionPoll> end_of_reads_ SILTFS_GUARDED_BY(closing_mutex_);
  std::optional<InterruptionPoll> end_of_requests_ SILTFS_GUARDED_BY(closing_mutex_);
};

// How long a request is repeated while the bucket fails.
inline constexpr std::chrono::seconds kRequestDeadline{60};
// The same for a conversion of a whole store, which may take hours.
inline constexpr std::chrono::minutes kConversionDeadline{5};

// Sends nothing yet. kInvalidArgument; kAccessDenied without usable credentials.
Result<std::unique_ptr<ObjectStore>> OpenObjects(
    Env& env, const BucketConfig& config, std::chrono::nanoseconds deadline = kRequestDeadline);

// Call before a prefix is claimed (bucket_owner.h).
Status CheckNoOuterStore(Env& env, const BucketConfig& config);

// Makes the store again in a directory that has nothing of it, from the commits and segments in its
// bucket. The first mount recovers it, and rebuilds the index. The writer before is fenced before
// anything is read. Errors: those of RestoreStore, and kNotFound if the bucket has no commits;
// without `take_over` also kInUse while the lease of another writer lasts.
Result<RestoredState> RestoreFromBucket(Env& env, const std::string& store,
                                        const BucketConfig& config, bool take_over);

// kInvalidArgument if STORE/bucket.cache is on another file system than STORE, so that no segment
// could be renamed into it. OK if that cannot be found out. Needs the lock of the store.
Status CheckBucketCache(Env& env, const std::string& store);

}  // namespace siltfs
