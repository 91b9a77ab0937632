#include "index/key_value/segment_reader_cache.h"

#include <algorithm>

namespace siltfs {

SegmentReaderCache::SegmentReaderCache(size_t capacity)
    : capacity_(std::max<size_t>(capacity, 1)) {}

SegmentReaderCache::Reader SegmentReaderCache::Find(SegmentId id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return found->second->second;
}

SegmentReaderCache::Reader SegmentReaderCache::Insert(SegmentId id, Reader reader) {
  if (Reader present = Find(id)) return present;
  by_use_.emplace_front(id, std::move(reader));
  by_id_[id] = by_use_.begin();
  if (by_use_.size() > capacity_) Erase(by_use_.back().first);
  return by_use_.front().second;
}

void SegmentReaderCache::Erase(SegmentId id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  by_use_.erase(found->second);
  by_id_.erase(found);
}

}  // namespace siltfs
