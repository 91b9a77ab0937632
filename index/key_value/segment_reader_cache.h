// The readers of the segments that were read last, so that not every read opens a file.
//
// Not thread-safe: whoever owns it locks. Ownership: a reader is shared with whoever reads through
// it, and its file stays open as long as one of them does.
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

  // Null if there is none.
  Reader Find(SegmentId id);
  // The one that is there if another thread came first. Drops the one that was not used for the
  // longest time when there are too many.
  Reader Insert(SegmentId id, Reader reader);
  void Erase(SegmentId id);

  size_t size() const { return by_use_.size(); }

 private:
  using Entry = std::pair<SegmentId, Reader>;

  const size_t capacity_;
  std::list<Entry> by_use_;  // the last used one first
  std::unordered_map<SegmentId, std::list<Entry>::iterator> by_id_;
};

}  // namespace siltfs
