// A bounded cache of shared, immutable values, which evicts the least recently used first. Used for
// open segments, decoded blocks and recipe nodes. Thread-safety: every call from any thread.
// Ownership: values are shared with their users, so an evicted value lives on while it is used.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>

#include "store/base/thread_annotations.h"

namespace siltfs {

template <typename Key, typename Value>
class LruCache {
 public:
  // `capacity` is in the unit of Put's costs.
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // Null if the cache has no value for the key.
  std::shared_ptr<Value> Get(const Key& key) SILTFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  // Replaces the old value. A value that costs more than the capacity is not kept.
  void Put(const Key& key, std::shared_ptr<Value> value, size_t cost) SILTFS_EXCLUDES(mutex_) {
    std::list<Entry> evicted;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    if (auto found = by_key_.find(key); found != by_key_.end()) Remove(found->second, evicted);
    if (cost > capacity_) return;
    entries_.push_front({key, std::move(value), cost});
    by_key_[key] = entries_.begin();
    cost_ += cost;
    while (cost_ > capacity_) Remove(std::prev(entries_.end()), evicted);
  }

  void Erase(const Key& key) SILTFS_EXCLUDES(mutex_) {
    std::list<Entry> evicted;
    MutexLock lock(mutex_);
    if (auto found = by_key_.find(key); found != by_key_.end()) Remove(found->second, evicted);
  }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<Value> value;
    size_t cost;
  };
  using Position = typename std::list<Entry>::iterator;

  void Remove(Position position, std::list<Entry>& evicted) SILTFS_REQUIRES(mutex_) {
    cost_ -= position->cost;
    by_key_.erase(position->key);
    evicted.splice(evicted.begin(), entries_, position);
  }

  const size_t capacity_;
  Mutex mutex_;
  std::list<Entry> entries_ SILTFS_GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<Key, Position> by_key_ SILTFS_GUARDED_BY(mutex_);
  size_t cost_ SILTFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace siltfs
