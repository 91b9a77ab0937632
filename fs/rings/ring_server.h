// Answers the requests that arrive through the rings of a mount (kernel_ring.h).
//
// Each ring has a leader, a thread that runs on the ring's processor. It answers quick requests
// itself, on the processor of the program that waits for the answer. It passes requests that may
// take long to the workers, and they pass the finished slots back to it. If no program waits for
// the answer, the leader is not woken for it. A quick request may turn out to take long. So another
// thread checks every few milliseconds whether the leader still answers the same request. If so, a
// worker becomes the ring's leader, and the former leader becomes a worker when it has answered
// that request.
//
// All threads but the watching one belong to one pool, of one for each ring and `workers` more.
// Thread-safety: Reply may be called from any thread; all other calls belong to the thread that
// made the server, or happen while that thread waits. Ownership: borrows the device; owns rings,
// memory and threads. Memory: see RingPlan.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "fs/rings/kernel_ring.h"
#include "fs/rings/local_wake.h"
#include "fs/rings/request_pace.h"
#include "fs/rings/ring_plan.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

struct RingServerOptions {
  RingPlan plan;
  unsigned workers = 8;
  // How long a leader may take to answer one request before another thread takes the lead.
  std::chrono::nanoseconds patience = std::chrono::milliseconds(4);
  // The function must be fast and must not wait.
  std::function<RequestPace(ByteView message)> pace;
  // Answers a request: causes, at once or later and on any thread, a call of Reply with the
  // request's number. A reply body that is built in `reply_area` is not copied.
  std::function<void(MutableByteView message, MutableByteView reply_area)> answer;
  // Whether a processor of the system is idle. From any thread.
  std::function<bool()> any_idle = [] { return false; };
  // Called once, on a thread of the server, when a ring has failed. Requests may then wait for ever
  // unless the callee ends the mount.
  std::function<void(const Status& cause)> failed;
};

class RingServer {
 public:
  // Makes rings, memory and threads, so that Start cannot fail.
  static Result<std::unique_ptr<RingServer>> Make(RingServerOptions options);
  ~RingServer();
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;

  // Offers the rings to the kernel. Call it once, when INIT was answered.
  void Start(int device);
  // Takes the reply to the request with the number in the reply's header. False if no request of
  // the rings has this number and awaits a reply.
  bool Reply(std::span<const iovec> parts);
  // Returns when no thread of the server answers a request. Call it after the connection has ended.
  // Replies are still accepted afterwards, and dropped.
  void Stop();

  size_t payload_bytes() const { return options_.plan.payload_bytes; }
  // The kernel has refused the rings and delivers all requests through /dev/fuse.
  bool Refused() const { return refused_; }

 private:
  struct Ring {
    Ring(bool local_wake_permitted, const std::function<bool()>& any_idle)
        : local_wake(local_wake_permitted, any_idle) {}

    unsigned processor = 0;
    std::unique_ptr<KernelRing> kernel;
    LocalWake local_wake;
    // These belong to the leader.
    bool registered = false;
    std::vector<RingSlot*> arrived;  // not answered yet; the last one is next
    size_t unawaited = 0;            // slots that workers have, or have finished
    unsigned uncertain_to_pass = 0;  // so many uncertain requests go to the workers
    size_t replies = 0;              // prepared, and awaited by a program
    // The number of the request that the leader answers itself; 0 if it answers none. The thread
    // that resets it, the leader or the watching thread, decides which thread leads from then on.
    std::atomic<uint64_t> answering = 0;
    std::atomic<uint64_t> answered = 0;
    // These belong to the watching thread.
    uint64_t seen_answering = 0;
    uint64_t seen_answered = 0;

    Mutex mutex;
    std::vector<RingSlot*> finished SILTFS_GUARDED_BY(mutex);  // with replies to hand in
    bool leader_waits SILTFS_GUARDED_BY(mutex) = false;
  };

  explicit RingServer(RingServerOptions options) : options_(std::move(options)) {}

  void Work() SILTFS_EXCLUDES(mutex_);
  // Returns when this thread no longer leads the ring.
  void Lead(Ring& ring) SILTFS_EXCLUDES(mutex_);
  // Hands in replies and waits for requests.
  Status AwaitRequests(Ring& ring);
  static void Commit(Ring& ring, RingSlot& slot);
  // False if another thread has taken the lead.
  bool AnswerArrived(Ring& ring) SILTFS_EXCLUDES(mutex_);
  bool AnswerAsLeader(Ring& ring, RingSlot& slot, MutableByteView message) SILTFS_EXCLUDES(mutex_);
  bool AnswerUncertain(Ring& ring, RingSlot& slot, MutableByteView message) SILTFS_EXCLUDES(mutex_);
  void PassToWorker(RingSlot& slot) SILTFS_EXCLUDES(mutex_);
  // Returns the next slot for a worker, or null.
  RingSlot* TakeWork() SILTFS_REQUIRES(mutex_);
  void Answer(RingSlot& slot, MutableByteView message);
  // The reply and the return of the handler are the halves of an answer. True for the second half.
  static bool FinishHalf(RingSlot& slot) { return slot.half_finished.exchange(true); }
  void HandBack(RingSlot& slot);
  // Answers a request that contradicts itself.
  void Refuse(RingSlot& slot);
  // Call it after the start of what the watching thread must see.
  void WakeWatcher() SILTFS_EXCLUDES(mutex_);
  void Watch() SILTFS_EXCLUDES(mutex_);
  // Takes the lead from leaders that answer one request for too long, gives leaders the usual
  // policy back, and has unawaited requests answered. True if no ring was active.
  bool CheckRings() SILTFS_REQUIRES(mutex_);
  void Fail(const Status& cause);
  // Claims the reply to the request with this number; null if no request awaits it.
  RingSlot* Claim(uint64_t number);

  const RingServerOptions options_;
  std::vector<std::unique_ptr<Ring>> rings_;
  int device_ = -1;  // set before any ring has a leader
  std::atomic<bool> refused_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> failed_ = false;
  // Whether a thread watches the leaders, or has been asked to.
  std::atomic<bool> watched_ = false;

  Mutex mutex_;
  CondVar work_added_;
  CondVar watch_wanted_;
  std::vector<Ring*> without_leader_ SILTFS_GUARDED_BY(mutex_);
  std::deque<RingSlot*> slow_ SILTFS_GUARDED_BY(mutex_);
  std::deque<RingSlot*> unawaited_ SILTFS_GUARDED_BY(mutex_);
  size_t answering_unawaited_ SILTFS_GUARDED_BY(mutex_) = 0;  // workers
  std::vector<std::thread> threads_;
};

}  // namespace siltfs::fuse
