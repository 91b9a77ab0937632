#include "fs/rings/local_wake.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <thread>

namespace siltfs::fuse {
namespace {

// sched_setscheduler(2) applies to one thread; 0 is the calling one.
bool SetPolicy(pid_t thread, int policy) {
  const sched_param none = {};
  return sched_setscheduler(thread, policy, &none) == 0;
}

}  // namespace

bool LocalWake::Permitted() {
  if (sched_getscheduler(0) != SCHED_OTHER) return false;
  bool permitted = false;
  try {
    std::thread([&permitted] {
      permitted = SetPolicy(0, SCHED_IDLE) && SetPolicy(0, SCHED_OTHER);
    }).join();
  } catch (const std::system_error&) {  // no thread: the server will meet this, too
  }
  return permitted;
}

void LocalWake::HandIn(const std::function<void()>& watch, const std::function<void()>& hand_in) {
  if (!permitted_) return hand_in();
  const Clock::time_point begin = now_();
  if (!Useful(begin)) return hand_in();
  thread_ = gettid();
  stay_ = ++stays_;
  watch();
  const bool stays = SetPolicy(0, SCHED_IDLE);
  hand_in();
  // Rescue may change the policy at any time, but only to SCHED_OTHER.
  if (stays) SetPolicy(0, SCHED_OTHER);
  stay_ = 0;  // not earlier, because Rescue must help until the policy is changed
  if (now_() - begin <= kShortStay) {
    next_skip_ = kFewSkipped;
    return;
  }
  to_skip_ = next_skip_;
  next_skip_ = std::min(2 * next_skip_, kMostSkipped);
}

bool LocalWake::Useful(Clock::time_point now) {
  if (to_skip_ > 0) {
    --to_skip_;
    return false;
  }
  if (!looked_ || now - *looked_ >= kBetweenLooks) {
    looked_ = now;
    idle_seen_ = any_idle_();
  }
  return idle_seen_;
}

bool LocalWake::Rescue() {
  const uint64_t stay = stay_;
  const bool same = stay != 0 && stay == seen_;
  seen_ = stay;
  if (same) SetPolicy(thread_, SCHED_OTHER);
  return stay != 0;
}

}  // namespace siltfs::fuse
