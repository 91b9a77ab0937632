#include "fs/inodes/write_sequencer.h"

#include <algorithm>

namespace siltfs {
namespace {

// At any time, the kernel's unanswered requests hold less data than this. So if a gap is larger, no
// other thread has the write that would fill it.
constexpr uint64_t kMaxGap = 64U << 20;
// A write that was overtaken this often goes next. The writes of one stream do not overtake each
// other this often.
constexpr uint64_t kMostOvertaking = 64;

}  // namespace

bool WriteSequencer::LiesAhead(uint64_t offset) const {
  return in_row_ >= stream_ && offset > end_ && offset - end_ <= kMaxGap;
}

void WriteSequencer::Enter(uint64_t offset, uint64_t length) {
  busy_ = true;
  ++gone_;
  in_row_ = offset == end_ ? in_row_ + 1 : 0;
  end_ = offset + length;
}

void WriteSequencer::Begin(uint64_t offset, uint64_t length) {
  const MutexLock lock(mutex_);
  if (busy_ || LiesAhead(offset)) {
    Waiter self{.offset = offset, .came = gone_};
    waiters_.push_back(&self);
    if (!busy_) LetNextGo();
    while (!self.go) {
      const Clock::time_point now = Clock::now();
      if (busy_ || !self.deadline) {  // another thread picks the next write
        self.told.Wait(mutex_);
      } else if (now < *self.deadline) {
        self.told.WaitFor(mutex_, *self.deadline - now);
      } else {
        in_row_ = 0;
        ++in_vain_;
        stream_ = std::min(2 * stream_, kLongStream);
        LetNextGo();
      }
    }
  }
  Enter(offset, length);
}

void WriteSequencer::End() {
  const MutexLock lock(mutex_);
  busy_ = false;
  LetNextGo();
}

size_t WriteSequencer::waiting() const {
  const MutexLock lock(mutex_);
  return waiters_.size();
}

uint64_t WriteSequencer::waited_in_vain() const {
  const MutexLock lock(mutex_);
  return in_vain_;
}

bool WriteSequencer::FirstIsDue() const {
  return !waiters_.empty() && gone_ - waiters_.front()->came >= kMostOvertaking;
}

WriteSequencer::Waiters::iterator WriteSequencer::Next() {
  if (FirstIsDue()) return waiters_.begin();
  auto next = std::find_if(waiters_.begin(), waiters_.end(),
                           [this](const Waiter* waiter)
                               SILTFS_NO_THREAD_SAFETY_ANALYSIS { return waiter->offset == end_; });
  if (next != waiters_.end()) return next;
  // In a stream, the write with the lowest offset above end_ comes next. Offsets below end_ wrap
  // around in the subtraction, so they come last.
  return std::min_element(
      waiters_.begin(), waiters_.end(),
      [this](const Waiter* a, const Waiter* b)
          SILTFS_NO_THREAD_SAFETY_ANALYSIS { return a->offset - end_ < b->offset - end_; });
}

void WriteSequencer::LetNextGo() {
  const auto next = Next();
  if (next == waiters_.end()) return;
  Waiter& waiter = **next;
  if (LiesAhead(waiter.offset) && !FirstIsDue()) {
    waiter.deadline = Clock::now() + patience_;
  } else {
    if (waiter.deadline && waiter.offset == end_) stream_ = kShortStream;  // a gap was filled
    waiters_.erase(next);
    busy_ = true;
    waiter.go = true;
  }
  waiter.told.NotifyAll();
}

}  // namespace siltfs
