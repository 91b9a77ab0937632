#include "fs/rings/ring_server.h"

#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace siltfs::fuse {
namespace {

// An uncertain request that took longer shows that data is not in memory. The next requests of this
// kind then go to the workers, so that the device works on several of them at a time.
constexpr std::chrono::microseconds kQuickAnswer{60};
constexpr unsigned kPassedAfterSlow = 16;

// The kernel gets an unawaited answer after this time at the latest. Until then it keeps the inode.
constexpr std::chrono::milliseconds kUnawaitedLimit{2};
// If more unawaited requests wait, another worker is woken for them.
constexpr size_t kFewUnawaited = 4;

// The slot whose request this thread is answering.
thread_local RingSlot* current_slot = nullptr;

// Keeps this thread on one processor. If the system does not allow that, the thread runs anywhere.
class OnProcessor {
 public:
  explicit OnProcessor(unsigned processor) {
    saved_ = pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) == 0;
    cpu_set_t one;
    CPU_ZERO(&one);
    if (processor < CPU_SETSIZE) CPU_SET(processor, &one);
    static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
  }
  ~OnProcessor() {
    if (saved_) static_cast<void>(pthread_setaffinity_np(pthread_self(), sizeof before_, &before_));
  }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;

 private:
  cpu_set_t before_ = {};
  bool saved_ = false;
};

}  // namespace

Result<std::unique_ptr<RingServer>> RingServer::Make(RingServerOptions options) {
  std::unique_ptr<RingServer> server(new RingServer(std::move(options)));
  const bool local_wake_permitted = LocalWake::Permitted();
  for (const RingPlan::Ring& planned : server->options_.plan.rings) {
    auto ring = std::make_unique<Ring>(local_wake_permitted, server->options_.any_idle);
    ring->processor = planned.processor;
    SILTFS_ASSIGN_OR_RETURN(ring->kernel,
                            KernelRing::Make(server->rings_.size(), planned.slot_queues,
                                             server->options_.plan.payload_bytes));
    server->rings_.push_back(std::move(ring));
  }
  try {
    for (size_t i = 0; i < server->rings_.size() + server->options_.workers; ++i) {
      server->threads_.emplace_back([raw = server.get()] { raw->Work(); });
    }
    server->threads_.emplace_back([raw = server.get()] { raw->Watch(); });
  } catch (const std::system_error& error) {
    return Status(StatusCode::kIoError, error.what());
  }
  return server;
}

RingServer::~RingServer() { Stop(); }

void RingServer::Start(int device) {
  device_ = device;
  const MutexLock lock(mutex_);
  for (const auto& ring : rings_) without_leader_.push_back(ring.get());
  work_added_.NotifyAll();
}

void RingServer::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    work_added_.NotifyAll();
    watch_wanted_.NotifyAll();
  }
  for (const auto& ring : rings_) ring->kernel->Wake();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void RingServer::Work() {
  while (true) {
    Ring* ring = nullptr;
    RingSlot* slot = nullptr;
    {
      const MutexLock lock(mutex_);
      while (true) {
        if (!without_leader_.empty() && !stopping_) {
          ring = without_leader_.back();
          without_leader_.pop_back();
          break;
        }
        slot = TakeWork();
        if (slot != nullptr) break;
        if (stopping_) return;
        work_added_.Wait(mutex_);
      }
    }
    if (ring != nullptr) {
      Lead(*ring);
      continue;
    }
    const bool unawaited = slot->unawaited;
    Answer(*slot, slot->Message());
    if (FinishHalf(*slot)) HandBack(*slot);
    if (unawaited) {
      const MutexLock lock(mutex_);
      --answering_unawaited_;
    }
  }
}

RingSlot* RingServer::TakeWork() {
  RingSlot* slot = nullptr;
  if (!slow_.empty()) {
    slot = slow_.front();
    slow_.pop_front();
  } else if (!unawaited_.empty()) {
    slot = unawaited_.front();
    unawaited_.pop_front();
    ++answering_unawaited_;
  }
  return slot;
}

void RingServer::PassToWorker(RingSlot& slot) {
  const MutexLock lock(mutex_);
  if (!slot.unawaited) {
    slow_.push_back(&slot);
    work_added_.NotifyOne();
    return;
  }
  unawaited_.push_back(&slot);
  // A worker that answers such a request looks for the next one when it has finished.
  if (answering_unawaited_ == 0 || unawaited_.size() > kFewUnawaited) work_added_.NotifyOne();
}

void RingServer::Lead(Ring& ring) {
  const OnProcessor pinned(ring.processor);
  if (!ring.registered) {
    ring.registered = true;
    const Status registered = ring.kernel->Register(device_);
    if (!registered.ok()) return Fail(registered);
  }
  while (true) {
    if (!AnswerArrived(ring)) return;
    if (stopping_ || ring.kernel->ended()) return;
    const Status waited = AwaitRequests(ring);
    if (ring.kernel->refused()) refused_ = true;
    if (!waited.ok()) return Fail(waited);
  }
}

Status RingServer::AwaitRequests(Ring& ring) {
  {
    const MutexLock lock(ring.mutex);
    for (RingSlot* slot : ring.finished) {
      if (slot->unawaited) --ring.unawaited;
      Commit(ring, *slot);
    }
    ring.finished.clear();
    ring.leader_waits = true;
  }
  // Only for a single reply: another one would wait while the program of the first one runs.
  if (ring.replies == 1) {
    ring.local_wake.HandIn([this] { WakeWatcher(); }, [&ring] { ring.kernel->Submit(); });
  }
  ring.replies = 0;
  // Unawaited answers do not wake the leader.
  const auto limit =
      ring.unawaited > 0 ? std::optional<std::chrono::nanoseconds>(kUnawaitedLimit) : std::nullopt;
  Status waited = ring.kernel->Wait(ring.arrived, limit);
  std::reverse(ring.arrived.begin(), ring.arrived.end());  // the oldest is answered first
  const MutexLock lock(ring.mutex);
  ring.leader_waits = false;
  return waited;
}

void RingServer::Commit(Ring& ring, RingSlot& slot) {
  if (!slot.unawaited) ++ring.replies;
  ring.kernel->Commit(slot);
}

bool RingServer::AnswerArrived(Ring& ring) {
  while (!ring.arrived.empty()) {
    RingSlot& slot = *ring.arrived.back();
    ring.arrived.pop_back();
    slot.half_finished = false;
    slot.awaited = slot.request_number();
    const MutableByteView message = slot.Message();
    if (message.empty()) {
      slot.unawaited = false;
      Refuse(slot);
      continue;
    }
    const RequestPace pace = options_.pace(message);
    slot.unawaited = pace == RequestPace::kUnawaited;
    if (slot.unawaited) ++ring.unawaited;
    bool leads = true;
    if (pace == RequestPace::kQuick) {
      leads = AnswerAsLeader(ring, slot, message);
    } else if (pace == RequestPace::kUncertain && ring.uncertain_to_pass == 0) {
      leads = AnswerUncertain(ring, slot, message);
    } else {
      if (pace == RequestPace::kUncertain) --ring.uncertain_to_pass;
      PassToWorker(slot);
    }
    if (!leads) return false;
    // The next answer may be delayed, so it must not hold back the reply to this request.
    if (!ring.arrived.empty()) {
      ring.kernel->Submit();
      ring.replies = 0;
    }
  }
  return true;
}

bool RingServer::AnswerUncertain(Ring& ring, RingSlot& slot, MutableByteView message) {
  const auto begin = std::chrono::steady_clock::now();
  if (!AnswerAsLeader(ring, slot, message)) return false;
  if (std::chrono::steady_clock::now() - begin > kQuickAnswer) {
    ring.uncertain_to_pass = kPassedAfterSlow;
  }
  return true;
}

bool RingServer::AnswerAsLeader(Ring& ring, RingSlot& slot, MutableByteView message) {
  uint64_t number = ++ring.answered;
  ring.answering = number;
  WakeWatcher();
  Answer(slot, message);
  const bool leads = ring.answering.compare_exchange_strong(number, 0);
  if (FinishHalf(slot)) {
    if (leads) {
      Commit(ring, slot);
    } else {
      HandBack(slot);
    }
  }
  return leads;
}

void RingServer::Answer(RingSlot& slot, MutableByteView message) {
  current_slot = &slot;
  options_.answer(message, slot.reply_area());
  current_slot = nullptr;
}

void RingServer::HandBack(RingSlot& slot) {
  Ring& ring = *rings_[slot.ring_number()];
  bool waits = false;
  {
    const MutexLock lock(ring.mutex);
    ring.finished.push_back(&slot);
    const bool urgent = !slot.unawaited || ring.finished.size() >= ring.kernel->slots().size() / 2;
    waits = urgent && std::exchange(ring.leader_waits, false);
  }
  if (waits) ring.kernel->Wake();
}

void RingServer::Refuse(RingSlot& slot) {
  fuse_out_header header = {.len = sizeof header, .error = -EIO, .unique = slot.awaited};
  slot.awaited = 0;
  const iovec part{.iov_base = &header, .iov_len = sizeof header};
  slot.SetReply({&part, 1});
  HandBack(slot);
}

bool RingServer::Reply(std::span<const iovec> parts) {
  fuse_out_header header;
  if (parts.empty() || parts[0].iov_len < sizeof header) return false;
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  RingSlot* const slot = header.unique == 0 ? nullptr : Claim(header.unique);
  if (slot == nullptr) return false;
  slot->SetReply(parts);
  if (FinishHalf(*slot)) HandBack(*slot);
  return true;
}

RingSlot* RingServer::Claim(uint64_t number) {
  const auto claims = [number](RingSlot& slot) {
    uint64_t expected = number;
    return slot.awaited.load(std::memory_order_relaxed) == number &&
           slot.awaited.compare_exchange_strong(expected, 0);
  };
  if (current_slot != nullptr && claims(*current_slot)) return current_slot;
  for (const auto& ring : rings_) {
    for (RingSlot& slot : ring->kernel->slots()) {
      if (claims(slot)) return &slot;
    }
  }
  return nullptr;
}

void RingServer::WakeWatcher() {
  if (watched_ || watched_.exchange(true)) return;
  const MutexLock lock(mutex_);
  watch_wanted_.NotifyOne();
}

void RingServer::Watch() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    if (watched_) {
      watch_wanted_.WaitFor(mutex_, options_.patience);
      // In this order, a leader that saw `watched_` set has begun its request before the check.
      watched_ = false;
      if (!CheckRings()) watched_ = true;
    } else {
      watch_wanted_.Wait(mutex_);
    }
  }
}

bool RingServer::CheckRings() {
  bool idle = unawaited_.empty();
  // The worker that answers unawaited requests may take long for one of them.
  if (!idle) work_added_.NotifyOne();
  for (const auto& ring : rings_) {
    uint64_t answering = ring->answering;
    const uint64_t answered = ring->answered;
    if (answering != 0 || answered != ring->seen_answered) idle = false;
    if (ring->local_wake.Rescue()) idle = false;
    const bool stuck = answering != 0 && answering == ring->seen_answering;
    ring->seen_answering = answering;
    ring->seen_answered = answered;
    if (stuck && ring->answering.compare_exchange_strong(answering, 0)) {
      without_leader_.push_back(ring.get());
      work_added_.NotifyOne();
    }
  }
  return idle;
}

void RingServer::Fail(const Status& cause) {
  if (!failed_.exchange(true)) options_.failed(cause);
}

}  // namespace siltfs::fuse
