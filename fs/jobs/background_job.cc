#include "fs/jobs/background_job.h"

#include <system_error>
#include <utility>

#include "store/env/process.h"

namespace siltfs {

BackgroundJob::BackgroundJob(Env& env, Options options) : env_(env), options_(std::move(options)) {}

BackgroundJob::~BackgroundJob() { Stop(); }

void BackgroundJob::Start(Loop loop) {
  MutexLock thread_lock(thread_mutex_);
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
  }
  // A Stop that begins now waits for thread_mutex_, and joins the new thread.
  if (thread_.joinable()) return;
  thread_ = std::thread([this, loop = std::move(loop)] { ThreadMain(loop); });
}

void BackgroundJob::Wake() {
  // Without the mutex, the background thread could miss the notification after it has found no work
  // and before it begins to wait.
  MutexLock lock(mutex_);
  wakes_.NotifyAll();
}

void BackgroundJob::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wakes_.NotifyAll();
  }
  {
    MutexLock thread_lock(thread_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  // Waits until the runs of callers have ended. For callers that come later, CheckRunning returns
  // kInterrupted.
  MutexLock run(run_mutex_);
}

void BackgroundJob::ThreadMain(const Loop& loop) {
  int64_t not_before = INT64_MIN;
  for (;;) {
    {
      MutexLock lock(mutex_);
      const auto has_work = [&loop] { return !loop.has_work || loop.has_work(); };
      while (!stopping_ && !has_work()) wakes_.Wait(mutex_);
      if (!stopping_) WaitAtMost(loop.poll);
      if (stopping_) return;
      if (MustYield() || !has_work() || env_.MonotonicNanoseconds() < not_before) continue;
    }
    const std::chrono::nanoseconds pause = loop.work();
    not_before = env_.MonotonicNanoseconds() + pause.count();
  }
}

BackgroundJob::Caller::Caller(BackgroundJob& job, Priority priority)
    : job_(job), priority_(priority) {
  job_.Enter(priority_);
}

BackgroundJob::Caller::~Caller() { job_.Leave(priority_); }

void BackgroundJob::Enter(Priority priority) {
  MutexLock lock(mutex_);
  if (priority == Priority::kUrgent) {
    ++urgent_;
  } else if (callers_++ == 0) {
    interrupted_ = false;
  }
  wakes_.NotifyAll();
}

void BackgroundJob::Leave(Priority priority) {
  MutexLock lock(mutex_);
  --(priority == Priority::kUrgent ? urgent_ : callers_);
  wakes_.NotifyAll();
}

void BackgroundJob::Interrupt() {
  MutexLock lock(mutex_);
  if (callers_ == 0) return;
  interrupted_ = true;
  wakes_.NotifyAll();
}

BackgroundJob::Run::Run(BackgroundJob& job, Runner runner) : job_(job) {
  job_.run_mutex_.Lock();
  job_.runner_ = runner;
  job_.running_ = true;
}

BackgroundJob::Run::~Run() {
  job_.running_ = false;
  job_.runner_ = Runner::kCaller;
  job_.run_mutex_.Unlock();
}

Status BackgroundJob::Interrupted() const {
  return Status(StatusCode::kInterrupted, options_.interrupted).At(options_.store);
}

Status BackgroundJob::CheckRunning() {
  MutexLock lock(mutex_);
  return MustEnd() ? Interrupted() : Status::Ok();
}

void BackgroundJob::WaitAtMost(std::chrono::nanoseconds time) {
  if (options_.wait) return options_.wait(wakes_, mutex_, time);
  wakes_.WaitFor(mutex_, time);
}

void BackgroundJob::Rest(std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  if (!MustEnd()) WaitAtMost(time);
}

Status BackgroundJob::RestUntil(int64_t time, const std::function<bool()>& may_continue,
                                std::chrono::nanoseconds poll) {
  MutexLock lock(mutex_);
  while (!MustEnd()) {
    // If a notification ends the wait early, for example that of Wake, the loop waits for the
    // remaining time.
    const int64_t rest = time - env_.MonotonicNanoseconds();
    if (rest <= 0 && may_continue()) return Status::Ok();
    WaitAtMost(rest > 0 ? std::chrono::nanoseconds(rest) : poll);
  }
  return Interrupted();
}

void BackgroundJob::MakeWay() {
  MutexLock lock(mutex_);
  while (urgent_ > 0) wakes_.Wait(mutex_);
}

void BackgroundJob::RunOnIdleThread(const std::function<void()>& work) {
  try {
    std::thread([&work] {
      RunWhenIdle();
      work();
    }).join();
  } catch (const std::system_error&) {  // the machine has no thread to spare
    work();
  }
}

}  // namespace siltfs
