#include "store/env/thread_read_queue.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/env/posix_file.h"
#include "store/env/read_request.h"

namespace siltfs {
namespace {

class ThreadReadQueue : public ReadQueue {
 public:
  explicit ThreadReadQueue(unsigned depth) : depth_(depth) {}

  ~ThreadReadQueue() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    work_.NotifyAll();
    for (std::thread& thread : threads_) thread.join();
  }

  void DoReadAll(std::span<ReadRequest> requests, const Again* again) override {
    StartThreads(std::min<size_t>(depth_, requests.size()));
    MutexLock lock(mutex_);
    requests_ = requests;
    again_ = again;
    next_ = 0;
    unfinished_ = requests.size();
    if (requests.size() > 1) work_.NotifyAll();
    while (next_ < requests_.size()) ReadNext();
    while (unfinished_ > 0) done_.Wait(mutex_);
    requests_ = {};
    next_ = 0;
  }

  std::string_view mechanism() const override { return "threads"; }

 private:
  // Starts threads until there are `wanted`, including the caller's thread.
  void StartThreads(size_t wanted) {
    while (threads_.size() + 1 < wanted) {
      try {
        threads_.emplace_back([this] { Work(); });
      } catch (const std::system_error&) {
        return;  // the system grants no more threads now
      }
    }
  }

  void Work() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      if (next_ < requests_.size()) {
        ReadNext();
      } else {
        work_.Wait(mutex_);
      }
    }
  }

  // Takes the next request and reads it; releases the mutex during the read.
  void ReadNext() SILTFS_REQUIRES(mutex_) {
    ReadRequest& request = requests_[next_++];
    do {
      mutex_.Unlock();
      request.status = BeginRequest(request, dynamic_cast<const PosixFile*>(Underlying(request)));
      if (request.status.ok()) ReadRest(request);
      mutex_.Lock();
    } while (IsAgain(again_, request));
    if (--unfinished_ == 0) done_.NotifyOne();
  }

  const unsigned depth_;
  std::vector<std::thread> threads_;  // used by the caller's thread only

  Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::span<ReadRequest> requests_ SILTFS_GUARDED_BY(mutex_);  // of the running call
  const Again* again_ SILTFS_GUARDED_BY(mutex_) = nullptr;
  size_t next_ SILTFS_GUARDED_BY(mutex_) = 0;  // next request to take
  size_t unfinished_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool stopping_ SILTFS_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<ReadQueue> NewThreadReadQueue(unsigned depth) {
  return std::make_unique<ThreadReadQueue>(depth);
}

}  // namespace siltfs
