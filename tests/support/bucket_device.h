// The bucket of a simulated or real device, for tests of whole stores that keep their sealed
// segments in a bucket (memory_segments.h): an object store in memory, and the BucketSegmentStore
// on it.
//
// The background work is done in the calling thread, after each change. So tests are deterministic.
// The cache is small, so most reads need the bucket.
//
// Thread-safety: every call from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/bucket/bucket_segment_store.h"
#include "store/env/sim_env.h"
#include "store/object/memory_object_store.h"

namespace siltfs::testing {

class BucketDevice {
 public:
  // Called when an object has changed, before the call that has changed it returns. Without a
  // content, the object was removed.
  using Changed = std::function<void(const std::string& key, std::optional<std::string> content)>;

  // The local directory is beside the store's directory. `env` must outlive this object.
  BucketDevice(Env& env, const std::string& store, Changed changed);
  ~BucketDevice();

  // The store. After a power cut it is another one, as after a restart of the process.
  std::shared_ptr<BucketSegmentStore> Store();
  // Uploads and deletes what waits. Failures leave it for the next call.
  void Work();
  // Makes an object what `changed` has reported.
  void Apply(const std::string& key, const std::optional<std::string>& content);
  // Held while an object changes and `changed` is called. Forks take it to see both or none.
  Mutex& change_mutex() SILTFS_RETURN_CAPABILITY(change_mutex_) { return change_mutex_; }
  // A bucket with the same objects, for a fork of the device.
  std::shared_ptr<BucketDevice> Fork(Env& env, Changed changed) const;
  // Removes everything, before a store is made again.
  void Clear();

 private:
  class Observed;

  Env& env_;
  const std::string store_path_;
  const Changed changed_;
  std::shared_ptr<MemoryObjectStore> memory_;
  const std::unique_ptr<Observed> objects_;
  Mutex change_mutex_;
  Mutex mutex_;
  std::shared_ptr<BucketSegmentStore> store_ SILTFS_GUARDED_BY(mutex_);
  uint64_t power_cuts_ SILTFS_GUARDED_BY(mutex_) = 0;  // when the store was made
};

}  // namespace siltfs::testing
