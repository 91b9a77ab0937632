// A group: the mutations of operations that will become durable together, as an ordered map key ->
// value or tombstone.
//
// The last mutation of a key wins. A group changes only by Add. When MetadataStore has closed the
// group, Add is still called for the deferred mutations of operations that joined it before. After
// these calls the group is immutable. Thread-safety: all calls from any thread. A concurrent call
// sees either all mutations of an Add or none. Memory: bytes() estimates the group's heap use,
// including map nodes and the allocator's overhead.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kv/kv_store.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class Group {
 public:
  enum class Presence : uint8_t { kAbsent, kRemoved, kPresent };

  void Add(std::vector<Mutation> mutations) SILTFS_EXCLUDES(mutex_);

  // Looks a key up; sets `value` only if the result is kPresent.
  Presence Find(std::string_view key, std::string* value) const SILTFS_EXCLUDES(mutex_);

  // Copies the entries of [begin, end) to `out`, in order, tombstones included. Stops after
  // `max_entries`, or when keys and values reach `max_bytes`, but copies at least one entry. An
  // empty `end` means no end.
  void CopyRange(std::string_view begin, std::string_view end, size_t max_entries, size_t max_bytes,
                 std::vector<Mutation>& out) const SILTFS_EXCLUDES(mutex_);

  // Passes all entries to the sink, in key order.
  void WriteTo(MutationSink& sink) const SILTFS_EXCLUDES(mutex_);

  // The keys of all entries, in order. They point into the group, so they are valid only until it
  // is destroyed.
  std::vector<std::string_view> Keys() const SILTFS_EXCLUDES(mutex_);

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  size_t entries() const SILTFS_EXCLUDES(mutex_);

 private:
  using Map = std::map<std::string, std::optional<std::string>, std::less<>>;

  mutable SharedMutex mutex_;
  Map map_ SILTFS_GUARDED_BY(mutex_);
  std::atomic<size_t> bytes_{0};
};

}  // namespace siltfs
