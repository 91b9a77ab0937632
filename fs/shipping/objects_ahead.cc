#include "fs/shipping/objects_ahead.h"

#include <algorithm>
#include <utility>

namespace siltfs {

ObjectsAhead::ObjectsAhead(ObjectStore& objects, std::vector<ObjectInfo> list, uint64_t limit,
                           size_t requests)
    : objects_(objects), list_(std::move(list)), limit_(limit) {
  if (list_.size() < 2) return;  // nothing can be read while the caller works
  const size_t threads = std::min(requests, list_.size());
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { ReadAhead(); });
}

ObjectsAhead::~ObjectsAhead() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  MutexLock lock(mutex_);
  SkipTo(started_);
}

bool ObjectsAhead::MayStart() const {
  if (started_ == wanted_) return true;
  return list_[started_].size <= kMostBytesAhead - std::min(bytes_, kMostBytesAhead);
}

// Waits until the next object may be read. Returns its position, or list_.size() at the end.
size_t ObjectsAhead::StartNext() {
  MutexLock lock(mutex_);
  while (!ended_ && started_ < list_.size() && !MayStart()) changed_.Wait(mutex_);
  if (ended_ || started_ == list_.size()) return list_.size();
  bytes_ += list_[started_].size;
  return started_++;
}

void ObjectsAhead::ReadAhead() {
  for (size_t mine = StartNext(); mine < list_.size(); mine = StartNext()) {
    // If the list is wrong, the object may be too large to be held beside others.
    const uint64_t limit = std::min(limit_, list_[mine].size);
    auto object = objects_.Get(list_[mine].key, limit, nullptr);
    const Status& status = object.status();
    const bool goes_on = status.ok() || status.Is(StatusCode::kNotFound) ||
                         status.Is(StatusCode::kCorruption) || status.Is(StatusCode::kFileTooLarge);
    MutexLock lock(mutex_);
    if (!goes_on) ended_ = true;
    if (mine >= wanted_) {
      read_.emplace(mine, std::move(object));
    } else {
      object.status().IgnoreError("the object was left out");
    }
    changed_.NotifyAll();
  }
}

void ObjectsAhead::SkipTo(size_t position) {
  for (; wanted_ < position; ++wanted_) {
    if (wanted_ == started_) {
      ++started_;
      continue;
    }
    bytes_ -= list_[wanted_].size;
    const auto object = read_.find(wanted_);
    if (object == read_.end()) continue;
    object->second.status().IgnoreError("the object was left out");
    read_.erase(object);
  }
}

Result<Bytes> ObjectsAhead::Get(const std::string& key) {
  const auto place = std::lower_bound(
      list_.begin(), list_.end(), key,
      [](const ObjectInfo& object, const std::string& other) { return object.key < other; });
  const bool listed = place != list_.end() && place->key == key;
  if (listed && !threads_.empty()) {
    const auto position = static_cast<size_t>(place - list_.begin());
    MutexLock lock(mutex_);
    if (position >= wanted_) {
      auto object = TakeAhead(position);
      if (object && !object->status().Is(StatusCode::kFileTooLarge)) return *std::move(object);
    }
  }
  return objects_.Get(key, limit_, nullptr);
}

std::optional<Result<Bytes>> ObjectsAhead::TakeAhead(size_t position) {
  SkipTo(position);
  changed_.NotifyAll();
  auto object = read_.find(position);
  while (object == read_.end()) {
    if (ended_ && position >= started_) return std::nullopt;
    changed_.Wait(mutex_);
    object = read_.find(position);
  }
  Result<Bytes> result = std::move(object->second);
  read_.erase(object);
  bytes_ -= list_[position].size;
  ++wanted_;
  changed_.NotifyAll();
  return result;
}

}  // namespace siltfs
