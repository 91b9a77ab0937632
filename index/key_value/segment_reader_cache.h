// A cache of the readers of recently read segments, so that not every read opens a file.
//
// Not thread-safe: the owner locks. Ownership: readers are shared with the callers that read
// through them, and a file stays open as long as its reader is referenced.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "store/base/location.h"
#include "store/segment/segment_reader.h"

namespace siltfs {

class SegmentReaderCache {
 public:
  using Reader = std::shared_ptr<const SegmentReader>;

  // Holds at most `capacity` readers, at least 1.
  explicit SegmentReaderCache(size_t capacity);

  // Returns the reader of the segment; null if it is not in the cache.
  Reader Find(SegmentId id);
  // Inserts a reader and returns it; returns the cached reader instead if another thread inserted
  // one first. Evicts the least recently used reader if there are too many.
  Reader Insert(SegmentId id, Reader reader);
  void Erase(SegmentId id);

  size_t size() const { return by_use_.size(); }

 private:
  using Entry = std::pair<SegmentId, Reader>;

  const size_t capacity_;
  std::list<Entry> by_use_;  // most recently used first
  std::unordered_map<SegmentId, std::list<Entry>::iterator> by_id_;
};

}  // namespace siltfs
