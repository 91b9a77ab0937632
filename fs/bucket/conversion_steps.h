// What both directions of a conversion share (store_conversion.h). An inner part of it, with the
// same contract.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fs/bucket/store_conversion.h"
#include "fs/open/store_records.h"
#include "fs/shipping/bucket_log.h"
#include "fs/shipping/log_object.h"
#include "store/base/progress_meter.h"
#include "store/base/result.h"
#include "store/bucket/bucket_catalog.h"
#include "store/bucket/stop_signal.h"
#include "store/env/env.h"
#include "store/env/files.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// Segments that were downloaded from the bucket, until all are there.
inline std::string BucketPullPath(const std::string& store) {
  return JoinPath(store, "bucket.pull");
}

// A store that was closed cleanly, with its lock.
struct ClosedStore {
  std::unique_ptr<FileLock> lock;
  SuperblockState state;
  StoreRecords records;
};

// kInvalidArgument if the store was not closed. Does not read the records of a store whose
// superblock says that `wanted_in_bucket` is true of it already.
Result<ClosedStore> LockClosedStore(Env& env, const std::string& store, bool wanted_in_bucket);

// Call before a store gets a bucket: the epochs of a bucket that it had before mean nothing there.
Status ForgetEpochs(Env& env, const std::string& store, const ClosedStore& closed);

// Writes a superblock that says where the sealed segments are.
Status WritePlace(Env& env, const std::string& store, const SuperblockState& state, bool in_bucket);

// OK if this copy of the store may follow the log: the log is empty, or this copy was its last
// writer. Otherwise kStale.
Status CheckLastWriter(const LogEnd& end, const WriterIdentity& own, const std::string& bucket);

// Begins an epoch of the log; returns its number. Another writer is then fenced, and a mount
// elsewhere is refused for the time of the lease.
Result<uint32_t> BeginEpoch(Env& env, ObjectStore& objects, const WriterIdentity& own);

// The files and directories of the local cache are removed, and made again if `make`.
Status ClearBucketCache(Env& env, const std::string& store, bool make);

// ForgetBucket for a caller that holds the lock.
Status ForgetBucketLocked(Env& env, const std::string& store);

// What is in the bucket and in the local cache. The ObjectStore repeats requests that fail.
Result<BucketCatalog> ListForConversion(Env& env, ObjectStore& objects, StopSignal& stop,
                                        const std::string& store);

// Calls `run`, which a request of options.interrupted ends through `stop` and `objects`; then
// returns kInterrupted.
Result<Conversion> RunInterruptibly(ObjectStore& objects, StopSignal& stop,
                                    const ConversionOptions& options,
                                    const std::function<Result<Conversion>()>& run);

// Counts bytes and reports them. Thread-safe.
class ConversionProgress {
 public:
  ConversionProgress(const ConversionOptions& options, uint64_t total)
      : options_(options), total_(total) {}
  void Add(uint64_t bytes) {
    const uint64_t done = done_.fetch_add(bytes) + bytes;
    if (options_.on_progress) options_.on_progress(done, total_);
  }

 private:
  const ConversionOptions& options_;
  const uint64_t total_;
  std::atomic<uint64_t> done_{0};
};

}  // namespace siltfs
