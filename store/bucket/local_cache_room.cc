// The part of LocalCache that decides which files stay, and which writers wait.
#include <algorithm>

#include "store/bucket/local_cache.h"
#include "store/bucket/local_cache_unit.h"

namespace siltfs {

// --- The order of eviction.

void LocalCache::Enter(Unit& unit, bool is_protected) {
  Order& order = is_protected ? protected_ : probation_;
  order.push_front(&unit);
  unit.place = order.begin();
  unit.is_listed = true;
  unit.is_protected = is_protected;
  if (is_protected) protected_bytes_ += unit.bytes;
}

void LocalCache::Leave(Unit& unit) {
  if (!unit.is_listed) return;
  (unit.is_protected ? protected_ : probation_).erase(unit.place);
  if (unit.is_protected) protected_bytes_ -= unit.bytes;
  unit.is_listed = false;
}

void LocalCache::Touch(Unit& unit, uint32_t block) {
  const bool second = unit.touched.Contains(block);
  unit.touched.Add(block);
  if (!unit.is_listed) return;
  const bool promoted = unit.is_protected || second;
  Leave(unit);
  Enter(unit, promoted);
  ShrinkProtected();
}

void LocalCache::ShrinkProtected() {
  while (protected_bytes_ > limits_.bytes / 5 * 4 && protected_.size() > 1) {
    Unit& unit = *protected_.back();
    Leave(unit);
    unit.touched.Clear();
    Enter(unit, false);
  }
}

void LocalCache::Grow(Unit& unit, uint64_t bytes) {
  unit.bytes += bytes;
  counters_.used_bytes += bytes;
  if (unit.is_listed && unit.is_protected) protected_bytes_ += bytes;
}

LocalCache::Unit* LocalCache::Victim(const Unit* keep) {
  for (const Order* order : {&probation_, &protected_}) {
    for (auto at = order->rbegin(); at != order->rend(); ++at) {
      if (*at != keep && (*at)->fills == 0) return *at;
    }
  }
  return nullptr;
}

bool LocalCache::MakeRoom(uint64_t bytes, bool file, const Unit* keep) {
  while (!closed_ && (counters_.used_bytes + bytes > limits_.bytes ||
                      (file && counters_.files >= limits_.files))) {
    Unit* const victim = Victim(keep);
    if (victim == nullptr) return false;
    ++counters_.evictions;
    RemoveUnit(*victim).IgnoreError("the next start finds the file, and counts it again");
  }
  return !closed_;
}

// --- Room.

Status LocalCache::Reserve(uint64_t bytes, std::chrono::nanoseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (!MakeRoom(bytes, false, nullptr)) {
    if (closed_) return Status(StatusCode::kIoError, "the store is being closed");
    if (pinned_bytes_ == 0) break;
    if (!counters_.full) ++counters_.waits;
    counters_.full = true;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return Status(StatusCode::kNoSpace, "the cache is full");
    ++waiting_reserves_;
    changed_.WaitFor(mutex_, left);
    --waiting_reserves_;
  }
  counters_.full = false;
  counters_.used_bytes += bytes;
  pinned_bytes_ += bytes;
  return Status::Ok();
}

void LocalCache::Unreserve(uint64_t bytes) {
  MutexLock lock(mutex_);
  counters_.used_bytes -= bytes;
  pinned_bytes_ -= bytes;
  changed_.NotifyAll();
}

}  // namespace siltfs
