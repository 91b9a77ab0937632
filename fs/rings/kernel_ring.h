// One io_uring through which the kernel delivers FUSE requests and takes replies
// (Documentation/filesystems/fuse/fuse-io-uring.rst of the kernel; Linux 6.14 or newer).
//
// The ring has a fixed number of slots. A slot holds one request and then its reply, in memory that
// the ring allocates once. The kernel copies a request into a slot on the thread that handed the
// slot to the kernel. So only one thread at a time, the ring's *leader*, calls Register, Commit and
// Wait, and it must not wait for the device for long while the kernel has its slots.
//
// Thread-safety: Register, Commit and Wait belong to the leader; a change of the leader needs a
// happens-before relation, which the caller provides. Wake may be called from any thread. A slot
// that Wait has returned belongs to the caller until Commit. Memory: payload_bytes and one page for
// each slot; pages that no request has touched are not resident. Errors: a Status with the cause.
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/rings/ring_protocol.h"
#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs::fuse {

// A request and its reply.
class RingSlot {
 public:
  uint64_t request_number() const;
  // The request as read(2) of /dev/fuse would return it. Empty if the kernel's description of the
  // request contradicts itself.
  MutableByteView Message();
  // The place of the reply's body. A body built here is not copied again. It overlaps the data and
  // names of the request, but not its header and arguments.
  MutableByteView reply_area() const { return payload_; }
  // Stores a reply: a fuse_out_header and parts of a body. A body that does not fit becomes EIO.
  void SetReply(std::span<const iovec> parts);

  // The number of the request that awaits a reply; 0 if none does. Set by the leader before the
  // request is answered; cleared by the thread that claims the reply.
  std::atomic<uint64_t> awaited = 0;
  // Two parties finish a slot: the thread that answers the request, when it returns, and the reply.
  // The second one hands the slot back to the leader.
  std::atomic<bool> half_finished = false;
  // No program waits for the reply. Set by the leader.
  bool unawaited = false;

  // The number given to KernelRing::Make.
  size_t ring_number() const { return ring_number_; }

 private:
  friend class KernelRing;

  size_t ring_number_ = 0;
  RingHeaders* headers_ = nullptr;
  MutableByteView payload_;
  uint16_t queue_ = 0;
  uint64_t commit_id_ = 0;
  iovec buffers_[2] = {};  // read by the kernel at registration
};

class KernelRing {
 public:
  // One slot for each element of `queues`. `number` is for the caller.
  static Result<std::unique_ptr<KernelRing>> Make(size_t number,
                                                  const std::vector<unsigned>& queues,
                                                  size_t payload_bytes);
  ~KernelRing();
  KernelRing(const KernelRing&) = delete;
  KernelRing& operator=(const KernelRing&) = delete;

  // Offers all slots to the kernel, with the next Wait. `device` is the open /dev/fuse after INIT
  // was answered.
  Status Register(int device);
  // Hands the slot's reply to the kernel, with the next Wait.
  void Commit(RingSlot& slot);
  // Hands in what Register and Commit have prepared. Failures show in the next Wait.
  void Submit() {
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
  }
  // Like Submit, and then waits until a request arrives, Wake is called,
  // or `limit` has passed, and appends the slots of new requests to `arrived`. An error means that
  // the ring is unusable while the mount exists.
  Status Wait(std::vector<RingSlot*>& arrived,
              std::optional<std::chrono::nanoseconds> limit = std::nullopt);
  // Makes the current or next Wait return.
  void Wake();

  // The kernel has refused a slot when it was registered, and so delivers requests through
  // /dev/fuse unless requests have arrived here.
  bool refused() const { return refused_; }
  // The connection has ended: no request will arrive.
  bool ended() const { return ended_slots_ == slots_.size(); }
  std::span<RingSlot> slots() { return slots_; }

 private:
  KernelRing() = default;

  Status AllocateSlots(size_t number, const std::vector<unsigned>& queues, size_t payload_bytes);
  io_uring_sqe* NextSubmission();
  void PrepareCommand(RingSlot& slot, uint32_t command);
  void PrepareWakeRead();
  Status Collect(std::vector<RingSlot*>& arrived);
  // Handles the outcome of a command that brought no request.
  Status NoteFailure(RingSlot& slot, int outcome);
  bool Connected() const;

  io_uring ring_ = {};
  bool made_ = false;
  int wake_descriptor_ = -1;
  int device_ = -1;          // borrowed
  uint64_t wake_count_ = 0;  // written by the kernel
  void* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  std::vector<RingSlot> slots_;
  size_t ended_slots_ = 0;
  bool refused_ = false;
};

}  // namespace siltfs::fuse
