#include "fs/core/write_turns.h"

#include <algorithm>

namespace siltfs {
namespace {

// So many in a row are a stream.
constexpr uint32_t kStream = 3;
// A gap larger than what the kernel sends at once is none that others will fill.
constexpr uint64_t kMaxGap = 64U << 20;

}  // namespace

bool WriteTurns::LiesAhead(uint64_t offset) const {
  return in_row_ >= kStream && offset > end_ && offset - end_ <= kMaxGap;
}

void WriteTurns::Enter(uint64_t offset, uint64_t length) {
  busy_ = true;
  in_row_ = offset == end_ ? in_row_ + 1 : 0;
  end_ = offset + length;
}

void WriteTurns::Begin(uint64_t offset, uint64_t length) {
  const MutexLock lock(mutex_);
  if (busy_ || LiesAhead(offset)) {
    Waiter self{.offset = offset};
    waiters_.push_back(&self);
    if (!busy_) LetNextGo();
    while (!self.go) {
      const Clock::time_point now = Clock::now();
      if (busy_ || !self.deadline) {  // who is busy decides what comes next
        self.told.Wait(mutex_);
      } else if (now < *self.deadline) {
        self.told.WaitFor(mutex_, *self.deadline - now);
      } else {
        in_row_ = 0;
        LetNextGo();
      }
    }
  }
  Enter(offset, length);
}

void WriteTurns::End() {
  const MutexLock lock(mutex_);
  busy_ = false;
  LetNextGo();
}

size_t WriteTurns::waiting() const {
  const MutexLock lock(mutex_);
  return waiters_.size();
}

WriteTurns::Waiters::iterator WriteTurns::Next() {
  auto next = std::find_if(waiters_.begin(), waiters_.end(),
                           [this](const Waiter* waiter)
                               SILTFS_NO_THREAD_SAFETY_ANALYSIS { return waiter->offset == end_; });
  if (next != waiters_.end()) return next;
  // The lowest above the end continues a stream soonest.
  return std::min_element(
      waiters_.begin(), waiters_.end(),
      [this](const Waiter* a, const Waiter* b)
          SILTFS_NO_THREAD_SAFETY_ANALYSIS { return a->offset - end_ < b->offset - end_; });
}

void WriteTurns::LetNextGo() {
  const auto next = Next();
  if (next == waiters_.end()) return;
  Waiter& waiter = **next;
  if (LiesAhead(waiter.offset)) {
    waiter.deadline = Clock::now() + patience_;
  } else {
    waiters_.erase(next);
    busy_ = true;
    waiter.go = true;
  }
  waiter.told.NotifyAll();
}

}  // namespace siltfs
