#include "store/env/uring_read_queue.h"

#include <liburing.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "store/env/posix_error.h"
#include "store/env/posix_file.h"
#include "store/env/read_request.h"

namespace siltfs {
namespace {

// Longer reads are split: the ring counts bytes in 32 bits, and a long read would delay the short
// reads behind it.
constexpr size_t kMaxTransfer = size_t{1} << 20;

class UringReadQueue : public ReadQueue {
 public:
  // Takes ownership of the ring.
  UringReadQueue(const io_uring& ring, unsigned depth) : ring_(ring), depth_(depth) {}
  ~UringReadQueue() override {
    if (usable_) io_uring_queue_exit(&ring_);
  }

  void DoReadAll(std::span<ReadRequest> requests, const Again* again) override {
    requests_ = requests;
    again_ = again;
    waiting_.clear();
    // In reverse order, because TakeWaiting takes the last one first.
    for (size_t i = requests.size(); i-- > 0;) Begin(i);
    if (usable_ && waiting_.size() > 1) ReadThroughRing();
    while (!waiting_.empty()) {
      const size_t i = TakeWaiting();
      ReadRest(requests_[i]);
      Done(i);
    }
    requests_ = {};
  }

  std::string_view mechanism() const override { return usable_ ? "io_uring" : "one by one"; }

 private:
  void Begin(size_t i) {
    ReadRequest& request = requests_[i];
    do {
      request.status = BeginRequest(request, dynamic_cast<const PosixFile*>(Underlying(request)));
      if (request.status.ok() && !request.out.empty()) {
        waiting_.push_back(i);
        return;
      }
    } while (IsAgain(again_, request));
  }

  void Done(size_t i) {
    if (IsAgain(again_, requests_[i])) Begin(i);
  }

  void ReadThroughRing() {
    while (true) {
      Fill();
      if (in_flight_ == 0) return;
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      // If the kernel is short of memory, a retry helps only while the kernel has reads of this
      // ring to finish. Otherwise the retries might never end.
      const bool passing =
          submitted == -EINTR || ((submitted == -EAGAIN || submitted == -EBUSY) && InKernel() > 0);
      if (submitted < 0 && !passing) return Abandon();
      Collect();
      // Submits waiting reads before FinishCollected, so that the device works while the caller
      // handles completed reads. If this submission fails, io_uring_submit_and_wait fails, too, in
      // the next turn of the loop, which handles that failure.
      Fill();
      if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
      FinishCollected();
    }
  }

  // Queues waiting reads, as far as the depth allows.
  void Fill() {
    while (in_flight_ < depth_ && !waiting_.empty()) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) return;  // the kernel has not taken the previous entries yet
      const size_t i = TakeWaiting();
      ReadRequest& request = requests_[i];
      const MutableByteView rest = request.out.subspan(request.bytes_read);
      io_uring_prep_read(entry, FileOf(request).descriptor(), rest.data(),
                         static_cast<unsigned>(std::min(rest.size(), kMaxTransfer)),
                         request.offset + request.bytes_read);
      io_uring_sqe_set_data64(entry, i);
      ++in_flight_;
    }
  }

  // Reaps the available completions.
  void Collect() {
    io_uring_cqe* outcome = nullptr;
    while (io_uring_peek_cqe(&ring_, &outcome) == 0) {
      const auto i = static_cast<size_t>(io_uring_cqe_get_data64(outcome));
      collected_.push_back({.request = i, .got = outcome->res});
      io_uring_cqe_seen(&ring_, outcome);
      --in_flight_;
    }
  }

  void FinishCollected() {
    for (const Outcome& outcome : collected_) Finish(outcome.request, outcome.got);
    collected_.clear();
  }

  void Finish(size_t i, int got) {
    ReadRequest& request = requests_[i];
    if (got == -EINTR || got == -EAGAIN) {
      ReadRest(request);  // rare; resubmitting to the ring might never end
      Done(i);
    } else if (got < 0) {
      request.status =
          PosixError("read", -got).At(request.file->path(), request.offset + request.bytes_read);
      Done(i);
    } else {
      request.bytes_read += static_cast<size_t>(got);
      const bool done = request.bytes_read == request.out.size() ||
                        FileOf(request).EndsAfter(static_cast<size_t>(got));
      if (done) {
        Done(i);
      } else {
        waiting_.push_back(i);
      }
    }
  }

  // Gives up the ring. Waits for the reads that the kernel has taken, because they write to the
  // caller's buffers. Moves the other reads back to waiting_.
  void Abandon() {
    const unsigned untaken = io_uring_sq_ready(&ring_);
    for (unsigned n = 0; n < untaken; ++n) {
      const unsigned at = (ring_.sq.sqe_tail - untaken + n) & ring_.sq.ring_mask;
      waiting_.push_back(static_cast<size_t>(ring_.sq.sqes[at].user_data));
    }
    in_flight_ -= untaken;
    while (in_flight_ > 0) {
      sched_yield();  // the kernel finishes reads when this thread makes any system call
      Collect();
    }
    FinishCollected();
    io_uring_queue_exit(&ring_);
    usable_ = false;
  }

  size_t InKernel() const { return in_flight_ - io_uring_sq_ready(&ring_); }

  size_t TakeWaiting() {
    const size_t i = waiting_.back();
    waiting_.pop_back();
    return i;
  }

  static const PosixFile& FileOf(const ReadRequest& request) {
    return static_cast<const PosixFile&>(*Underlying(request));  // checked by BeginRequest
  }

  struct Outcome {
    size_t request;
    int got;  // io_uring's result: bytes, or a negative errno
  };

  io_uring ring_;
  const unsigned depth_;
  bool usable_ = true;
  // State of the running call:
  std::span<ReadRequest> requests_;
  const Again* again_ = nullptr;
  std::vector<size_t> waiting_;  // to be read, from bytes_read on; the last one is next
  size_t in_flight_ = 0;         // queued in the ring, not reaped
  std::vector<Outcome> collected_;
};

}  // namespace

Result<std::unique_ptr<ReadQueue>> NewUringReadQueue(unsigned depth) {
  io_uring ring{};
  const int made = io_uring_queue_init(depth, &ring, 0);
  if (made < 0) return PosixError("set up io_uring", -made);
  return std::unique_ptr<ReadQueue>(std::make_unique<UringReadQueue>(ring, depth));
}

}  // namespace siltfs
