#include "fs/meta/group.h"

#include <utility>

namespace siltfs {

namespace {

// Returns the bytes that malloc takes for a request: the request and 8 bytes of overhead, rounded
// up to a multiple of 16, and at least 32.
size_t HeapBlock(size_t request) {
  const size_t block = (request + 8 + 15) / 16 * 16;
  return block < 32 ? 32 : block;
}

size_t HeapOf(const std::string& text) {
  // Short strings are stored inside the object.
  return text.capacity() <= std::string().capacity() ? 0 : HeapBlock(text.capacity() + 1);
}

size_t HeapOf(const std::optional<std::string>& value) { return value ? HeapOf(*value) : 0; }

// The header of a red-black tree's node: its colour and three pointers. The entry follows.
constexpr size_t kNodeHeader = 4 * sizeof(void*);

}  // namespace

void Group::Add(std::vector<Mutation> mutations) {
  const size_t node = HeapBlock(kNodeHeader + sizeof(Map::value_type));
  size_t more = 0;
  size_t less = 0;
  WriterLock lock(mutex_);
  for (Mutation& mutation : mutations) {
    auto [entry, added] = map_.try_emplace(std::move(mutation.key));
    if (added) {
      more += node + HeapOf(entry->first);
    } else {
      less += HeapOf(entry->second);
    }
    entry->second = std::move(mutation.value);
    more += HeapOf(entry->second);
  }
  bytes_.fetch_add(more - less, std::memory_order_relaxed);
}

Group::Presence Group::Find(std::string_view key, std::string* value) const {
  ReaderLock lock(mutex_);
  const auto entry = map_.find(key);
  if (entry == map_.end()) return Presence::kAbsent;
  if (!entry->second) return Presence::kRemoved;
  *value = *entry->second;
  return Presence::kPresent;
}

void Group::CopyRange(std::string_view begin, std::string_view end, size_t max_entries,
                      size_t max_bytes, std::vector<Mutation>& out) const {
  ReaderLock lock(mutex_);
  size_t entries = 0;
  size_t bytes = 0;
  for (auto entry = map_.lower_bound(begin); entry != map_.end(); ++entry) {
    if (!end.empty() && entry->first >= end) return;
    if (entries == max_entries || (entries > 0 && bytes >= max_bytes)) return;
    out.push_back({entry->first, entry->second});
    ++entries;
    bytes += entry->first.size() + (entry->second ? entry->second->size() : 0);
  }
}

void Group::WriteTo(MutationSink& sink) const {
  ReaderLock lock(mutex_);
  for (const auto& [key, value] : map_) {
    if (value) {
      sink.Put(key, *value);
    } else {
      sink.Remove(key);
    }
  }
}

std::vector<std::string_view> Group::Keys() const {
  ReaderLock lock(mutex_);
  std::vector<std::string_view> keys;
  keys.reserve(map_.size());
  for (const auto& entry : map_) keys.push_back(entry.first);
  return keys;
}

size_t Group::entries() const {
  ReaderLock lock(mutex_);
  return map_.size();
}

}  // namespace siltfs
