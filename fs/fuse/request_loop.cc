#include "fs/fuse/request_loop.h"

#include <poll.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "fs/fuse/adaptive_poll.h"
#include "fs/fuse/request_kind.h"
#include "fs/fuse/stop_event.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {
namespace {

class Request {
 public:
  Request() = default;
  ~Request() { std::free(buffer_.mem); }  // libfuse allocates it when it is first used
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  int Receive(fuse_session* session) { return fuse_session_receive_buf(session, &buffer_); }
  void Answer(fuse_session* session) { fuse_session_process_buf(session, &buffer_); }
  bool IsQuick() const {
    return PaceOf({static_cast<const uint8_t*>(buffer_.mem), buffer_.size}) == RequestPace::kQuick;
  }

 private:
  fuse_buf buffer_ = {};
};

class RequestLoop {
 public:
  RequestLoop(fuse_session* session, const RequestLoopOptions& options)
      : session_(session), options_(options) {}

  int Run(unsigned count) SILTFS_EXCLUDES(mutex_) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back([this, me = i + 1] { Work(me); });
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    return outcome_.value_or(0);
  }

 private:
  using ThreadNumber = unsigned;
  static constexpr ThreadNumber kNobody = 0;

  void Work(ThreadNumber me) {
    Request request;
    AdaptivePoll adaptive_poll(std::thread::hardware_concurrency(),
                               [this] { return runnable_.Count(); });
    while (WaitForLead(me)) Lead(me, request, adaptive_poll);
  }
  // False when the loop has ended.
  bool WaitForLead(ThreadNumber me) SILTFS_EXCLUDES(mutex_);
  // Takes the lead if the leader answers one request for too long. Returns when it has taken the
  // lead, when there is no leader, when no request was answered for a while, or when the loop has
  // ended.
  void Watch(ThreadNumber me) SILTFS_REQUIRES(mutex_);
  // Returns when this thread no longer leads, or when the loop has ended.
  void Lead(ThreadNumber me, Request& request, AdaptivePoll& adaptive_poll) SILTFS_EXCLUDES(mutex_);
  // Polls until a request waits or this thread no longer leads, at most for kDuration. Returns at
  // once if AdaptivePoll advises against polling.
  void LookForRequest(ThreadNumber me, AdaptivePoll& adaptive_poll) const;
  void AnswerAsLeader(Request& request) SILTFS_EXCLUDES(mutex_);
  void HandOver(ThreadNumber me) SILTFS_EXCLUDES(mutex_);
  void End(int outcome) SILTFS_EXCLUDES(mutex_);
  bool MoreWait() const {
    pollfd device{.fd = fuse_session_fd(session_), .events = POLLIN, .revents = 0};
    return poll(&device, 1, 0) > 0;
  }

  fuse_session* const session_;
  const RequestLoopOptions& options_;
  const RunnableThreads runnable_;

  // Changed under mutex_. A thread checks without mutex_ whether it still leads.
  std::atomic<ThreadNumber> leader_ = kNobody;
  // The number of the request that the leader answers; 0 while it reads.
  std::atomic<uint64_t> answering_ = 0;
  std::atomic<uint64_t> answered_by_leaders_ = 0;
  // Whether a thread watches the leader, or has been asked to watch.
  std::atomic<bool> watched_ = false;

  Mutex mutex_;
  CondVar changed_;
  bool watch_wanted_ SILTFS_GUARDED_BY(mutex_) = false;
  std::optional<int> outcome_ SILTFS_GUARDED_BY(mutex_);
};

bool RequestLoop::WaitForLead(ThreadNumber me) {
  const MutexLock lock(mutex_);
  while (!outcome_) {
    if (leader_ == kNobody) leader_ = me;
    if (leader_ == me) return true;
    if (watch_wanted_) {
      Watch(me);
    } else {
      changed_.Wait(mutex_);
    }
  }
  return false;
}

void RequestLoop::Watch(ThreadNumber me) {
  watch_wanted_ = false;
  for (uint64_t seen = answered_by_leaders_; !outcome_ && leader_ != kNobody;) {
    const uint64_t answering = answering_;
    changed_.WaitFor(mutex_, options_.patience);
    if (answering != 0 && answering_ == answering) {
      answering_ = 0;
      leader_ = me;
      break;
    }
    const uint64_t now = answered_by_leaders_;
    if (now == seen && answering_ == 0) {
      watched_ = false;
      // A leader that saw `watched_` set may have begun a request since the check.
      if (answering_ == 0 || watched_.exchange(true)) return;
    }
    seen = now;
  }
  watched_ = false;
}

void RequestLoop::HandOver(ThreadNumber me) {
  const MutexLock lock(mutex_);
  if (leader_ == me) leader_ = kNobody;
  changed_.NotifyOne();
}

void RequestLoop::End(int outcome) {
  const MutexLock lock(mutex_);
  if (!outcome_) outcome_ = outcome;
  changed_.NotifyAll();
}

void RequestLoop::AnswerAsLeader(Request& request) {
  uint64_t number = ++answered_by_leaders_;
  answering_ = number;
  if (!watched_.exchange(true)) {
    const MutexLock lock(mutex_);
    watch_wanted_ = true;
    changed_.NotifyOne();
  }
  request.Answer(session_);
  answering_.compare_exchange_strong(number, 0);  // unless another thread leads by now
}

void RequestLoop::LookForRequest(ThreadNumber me, AdaptivePoll& adaptive_poll) const {
  const auto begin = AdaptivePoll::Clock::now();
  if (!adaptive_poll.Begin(begin)) return;
  while (leader_ == me && !MoreWait()) {
    if (AdaptivePoll::Clock::now() - begin >= AdaptivePoll::kDuration) return;
  }
}

void RequestLoop::Lead(ThreadNumber me, Request& request, AdaptivePoll& adaptive_poll) {
  while (leader_ == me) {
    if (options_.seldom_used()) {
      std::this_thread::sleep_for(RequestLoopOptions::kPause);
    } else {
      LookForRequest(me, adaptive_poll);
    }
    if (options_.stop != nullptr && !options_.stop->AwaitRequest(fuse_session_fd(session_)))
      return End(0);
    const int got = request.Receive(session_);
    if (got == -EINTR || (got == -EAGAIN && options_.stop != nullptr)) continue;
    if (got <= 0) return End(got);
    adaptive_poll.Arrived(AdaptivePoll::Clock::now());
    const bool quick = request.IsQuick() && !MoreWait();
    if (leader_ != me)
      return request.Answer(session_);  // another thread took the lead while this
                                        // one answered the previous request
    if (quick) {
      AnswerAsLeader(request);
    } else {
      HandOver(me);
      return request.Answer(session_);
    }
  }
}

}  // namespace

int ServeRequests(fuse_session* session, const RequestLoopOptions& options) {
  return RequestLoop(session, options).Run(options.threads);
}

}  // namespace siltfs::fuse
