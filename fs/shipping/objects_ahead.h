// Reads small objects of a bucket before they are needed, several at a time, so that a restore does
// not wait for the answer to one request after another.
//
// Get returns what ObjectStore::Get would return. The list has the objects in the order of their
// keys, as ObjectStore::List returns them. Callers get them in this order, and may leave objects
// out. An object that is not in the list, or comes before the last one, is read by Get itself.
//
// After a request has failed, no more objects are read ahead.
//
// Thread-safety: one thread calls Get. Ownership: the ObjectStore must outlive this object. The
// destructor waits for the requests that are running. Memory: the list, and objects of together
// kMostBytesAhead, or one larger object, beside the one that the caller holds. Errors: those of
// ObjectStore::Get.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "store/object/object_store.h"

namespace siltfs {

class ObjectsAhead {
 public:
  static constexpr size_t kMostRequests = 4;
  static constexpr uint64_t kMostBytesAhead = 8u << 20;

  // `limit`: the largest size of an object in bytes. `requests`: how many run at a time; with 0,
  // nothing is read ahead.
  ObjectsAhead(ObjectStore& objects, std::vector<ObjectInfo> list, uint64_t limit,
               size_t requests = kMostRequests);
  ~ObjectsAhead();
  ObjectsAhead(const ObjectsAhead&) = delete;
  ObjectsAhead& operator=(const ObjectsAhead&) = delete;

  Result<Bytes> Get(const std::string& key) SILTFS_EXCLUDES(mutex_);

 private:
  void ReadAhead() SILTFS_EXCLUDES(mutex_);
  size_t StartNext() SILTFS_EXCLUDES(mutex_);
  // Nothing if the object was not read ahead.
  std::optional<Result<Bytes>> TakeAhead(size_t position) SILTFS_REQUIRES(mutex_);
  bool MayStart() const SILTFS_REQUIRES(mutex_);
  // Drops the objects before `position`, which were left out.
  void SkipTo(size_t position) SILTFS_REQUIRES(mutex_);

  ObjectStore& objects_;
  const std::vector<ObjectInfo> list_;
  const uint64_t limit_;

  Mutex mutex_;
  CondVar changed_;
  size_t wanted_ SILTFS_GUARDED_BY(mutex_) = 0;   // the first object that was not returned yet
  size_t started_ SILTFS_GUARDED_BY(mutex_) = 0;  // objects before this one are read or being read
  uint64_t bytes_ SILTFS_GUARDED_BY(mutex_) = 0;  // listed sizes of [wanted_, started_)
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;  // no more requests begin
  std::map<size_t, Result<Bytes>> read_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace siltfs
