// The requests of a store to its bucket over its whole life, in the file STORE/bucket.usage.
//
// The process that has the store open for writing adds its requests to the file from time to time,
// and when it ends. So a process that is killed loses those since the last time. Requests of
// commands that only read a store, of mkfs, and of conversions (store_conversion.h) are not
// counted. If one process ends while the next one begins, the counts of one of them since its last
// save may be lost. These numbers are for people: a damaged file is replaced, and begins from zero.
//
// The file is text: a line "siltfs bucket usage 1", lines "NAME NUMBER", and a line with the
// checksum of the lines before it (docs/format.md).
//
// Thread-safety: the recorder may be used by any thread; the functions are pure. Errors: Env's;
// kCorruption if the file is damaged, kNeedsNewer if another version has written it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/env/env.h"
#include "store/object/object_store.h"

namespace siltfs {

struct BucketUsage {
  ObjectStoreCounters requests;
  int64_t since_ns = 0;  // when the counting began, since 1970

  bool operator==(const BucketUsage&) const = default;
};

std::string EncodeBucketUsage(const BucketUsage& usage);
Result<BucketUsage> DecodeBucketUsage(std::string_view text);
// Zeros, with `now_ns` as the beginning, if there is no file.
Result<BucketUsage> ReadBucketUsage(Env& env, const std::string& store, int64_t now_ns);

class BucketUsageRecorder {
 public:
  // Counts the requests of `objects`. All must outlive the recorder.
  BucketUsageRecorder(Env& env, std::string store, const ObjectStore& objects);
  ~BucketUsageRecorder();  // saves, if it was started
  BucketUsageRecorder(const BucketUsageRecorder&) = delete;
  BucketUsageRecorder& operator=(const BucketUsageRecorder&) = delete;

  // Saves from now on, by a thread. Only for the process that has the lock of the store.
  void Start() SILTFS_EXCLUDES(mutex_);
  // Adds what was counted since the last time to the file. Durable on return.
  Status Save() SILTFS_EXCLUDES(mutex_);
  // The requests in the file and those that were counted since.
  BucketUsage Total() const SILTFS_EXCLUDES(mutex_);

 private:
  void ThreadMain() SILTFS_EXCLUDES(mutex_);
  Status SaveLocked() SILTFS_REQUIRES(mutex_);

  Env& env_;
  const std::string store_;
  const ObjectStore& objects_;
  mutable Mutex mutex_;
  CondVar changed_;
  BucketUsage saved_ SILTFS_GUARDED_BY(mutex_);            // in the file
  ObjectStoreCounters counted_ SILTFS_GUARDED_BY(mutex_);  // of `objects`, that are in the file
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace siltfs
