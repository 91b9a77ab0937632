#include "tools/bench/mix_pace.h"

namespace siltfs {

void MixPace::BeforePut() {
  MutexLock lock(mutex_);
  while (!ended_ && gets_ + slack_ < GetsDue()) changed_.Wait(mutex_);
}

void MixPace::AfterPut(uint64_t count) {
  MutexLock lock(mutex_);
  puts_ += count;
  changed_.NotifyAll();
}

std::optional<uint64_t> MixPace::ClaimGets(uint64_t count) {
  MutexLock lock(mutex_);
  while (!ended_ && claimed_ + count > GetsDue()) changed_.Wait(mutex_);
  if (ended_) return std::nullopt;
  claimed_ += count;
  return present_ + puts_;
}

void MixPace::AfterGets(uint64_t count) {
  MutexLock lock(mutex_);
  gets_ += count;
  changed_.NotifyAll();
}

void MixPace::End() {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

uint64_t MixPace::gets() const {
  MutexLock lock(mutex_);
  return gets_;
}

}  // namespace siltfs
