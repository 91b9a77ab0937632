#include "fs/rings/kernel_ring.h"

#include <fmt/format.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace siltfs::fuse {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr uint64_t kWakeTag = UINT64_MAX;
// A pause before the kernel is asked again when it is short of memory.
constexpr std::chrono::milliseconds kRetryAfter{1};

Status Failure(const char* what, int error) {
  return {StatusCode::kIoError, fmt::format("{}: {}", what, std::strerror(error))};
}

}  // namespace

uint64_t RingSlot::request_number() const {
  fuse_in_header header;
  std::memcpy(&header, headers_->in_out, sizeof header);
  return header.unique;
}

MutableByteView RingSlot::Message() {
  fuse_in_header header;
  std::memcpy(&header, headers_->in_out, sizeof header);
  const size_t payload = headers_->slot.payload_bytes;
  if (payload > payload_.size() || header.len < sizeof header + payload) return {};
  const size_t arguments = header.len - sizeof header - payload;
  if (arguments > sizeof headers_->arguments) return {};
  // Header and arguments are put right in front of the payload, which is thus not copied.
  uint8_t* const begin = payload_.data() - arguments - sizeof header;
  std::memcpy(begin, &header, sizeof header);
  std::memcpy(begin + sizeof header, headers_->arguments, arguments);
  return {begin, header.len};
}

void RingSlot::SetReply(std::span<const iovec> parts) {
  fuse_out_header header;
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  size_t used = 0;
  for (const iovec& part : parts.subspan(1)) {
    if (part.iov_len > payload_.size() - used) {
      header.error = -EIO;
      used = 0;
      break;
    }
    uint8_t* const place = payload_.data() + used;
    if (part.iov_len > 0 && part.iov_base != place)
      std::memmove(place, part.iov_base, part.iov_len);
    used += part.iov_len;
  }
  header.len = static_cast<uint32_t>(sizeof header + used);
  std::memcpy(headers_->in_out, &header, sizeof header);
  headers_->slot.payload_bytes = static_cast<uint32_t>(used);
}

Result<std::unique_ptr<KernelRing>> KernelRing::Make(size_t number,
                                                     const std::vector<unsigned>& queues,
                                                     size_t payload_bytes) {
  std::unique_ptr<KernelRing> ring(new KernelRing);
  const auto entries = static_cast<unsigned>(queues.size() + 1);  // one for PrepareWakeRead
  io_uring_params parameters = {};
  // SUBMIT_ALL: one refused command does not hold back the replies behind it. COOP_TASKRUN: the
  // kernel does not interrupt the leader while it answers a request.
  parameters.flags = IORING_SETUP_SQE128 | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE |
                     IORING_SETUP_COOP_TASKRUN;
  parameters.cq_entries = entries * 2;
  const int made = io_uring_queue_init_params(entries, &ring->ring_, &parameters);
  if (made != 0) return Failure("cannot make an io_uring", -made);
  ring->made_ = true;
  // The memory of the ring keeps /dev/fuse open. A child process that has a copy would keep the
  // connection alive after the daemon's end, and programs would wait for ever.
  const int not_copied = io_uring_ring_dontfork(&ring->ring_);
  if (not_copied != 0) return Failure("cannot make an io_uring", -not_copied);
  ring->wake_descriptor_ = eventfd(0, EFD_CLOEXEC);
  if (ring->wake_descriptor_ < 0) return Failure("cannot make an eventfd", errno);
  SILTFS_RETURN_IF_ERROR(ring->AllocateSlots(number, queues, payload_bytes));
  return ring;
}

Status KernelRing::AllocateSlots(size_t number, const std::vector<unsigned>& queues,
                                 size_t payload_bytes) {
  const size_t stride = kPageBytes + payload_bytes;
  memory_bytes_ = stride * queues.size();
  void* const memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return Failure("no memory for the slots of a ring", errno);
  memory_ = memory;
  slots_ = std::vector<RingSlot>(queues.size());
  for (size_t i = 0; i < queues.size(); ++i) {
    auto* const begin = static_cast<uint8_t*>(memory) + i * stride;
    RingSlot& slot = slots_[i];
    slot.ring_number_ = number;
    slot.headers_ = reinterpret_cast<RingHeaders*>(begin);
    slot.payload_ = {begin + kPageBytes, payload_bytes};
    slot.queue_ = static_cast<uint16_t>(queues[i]);
    slot.buffers_[0] = {.iov_base = slot.headers_, .iov_len = sizeof(RingHeaders)};
    slot.buffers_[1] = {.iov_base = slot.payload_.data(), .iov_len = payload_bytes};
  }
  return {};
}

KernelRing::~KernelRing() {
  if (made_) io_uring_queue_exit(&ring_);  // the kernel then no longer writes into the slots
  if (wake_descriptor_ >= 0) close(wake_descriptor_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
}

Status KernelRing::Register(int device) {
  const int registered = io_uring_register_files(&ring_, &device, 1);
  if (registered != 0) return Failure("cannot use /dev/fuse in an io_uring", -registered);
  device_ = device;
  PrepareWakeRead();
  for (RingSlot& slot : slots_) PrepareCommand(slot, kRingRegister);
  return {};
}

void KernelRing::Commit(RingSlot& slot) { PrepareCommand(slot, kRingCommitAndFetch); }

io_uring_sqe* KernelRing::NextSubmission() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  // There are as many entries as slots, plus one for the wake-up. So entries can be missing only
  // while the kernel has not taken earlier ones.
  while (entry == nullptr) {
    if (io_uring_submit(&ring_) < 0) std::this_thread::sleep_for(kRetryAfter);
    entry = io_uring_get_sqe(&ring_);
  }
  return entry;
}

void KernelRing::PrepareCommand(RingSlot& slot, uint32_t command) {
  io_uring_sqe* const entry = NextSubmission();
  std::memset(entry, 0, 2 * sizeof *entry);  // submissions are of double size
  entry->opcode = IORING_OP_URING_CMD;
  entry->flags = IOSQE_FIXED_FILE;
  entry->fd = 0;  // the only registered file
  entry->cmd_op = command;
  entry->user_data = static_cast<uint64_t>(&slot - slots_.data());
  RingCommand details = {};
  details.queue = slot.queue_;
  if (command == kRingRegister) {
    entry->addr = reinterpret_cast<uint64_t>(slot.buffers_);
    entry->len = 2;
  } else {
    details.commit_id = slot.commit_id_;
  }
  std::memcpy(entry->cmd, &details, sizeof details);
}

void KernelRing::PrepareWakeRead() {
  io_uring_sqe* const entry = NextSubmission();
  io_uring_prep_read(entry, wake_descriptor_, &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data64(entry, kWakeTag);
}

void KernelRing::Wake() {
  const uint64_t one = 1;
  // It fails only when the counter is full, and then Wait returns anyway.
  if (write(wake_descriptor_, &one, sizeof one) < 0) return;
}

Status KernelRing::Wait(std::vector<RingSlot*>& arrived,
                        std::optional<std::chrono::nanoseconds> limit) {
  int outcome = 0;
  if (io_uring_sq_ready(&ring_) == 0 && io_uring_cq_ready(&ring_) > 0) return Collect(arrived);
  if (limit) {
    __kernel_timespec time = {.tv_sec = 0, .tv_nsec = limit->count()};
    io_uring_cqe* first = nullptr;
    outcome = io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
  } else {
    outcome = io_uring_submit_and_wait(&ring_, 1);
  }
  switch (-outcome) {
    case EINTR:
    case ETIME:
    case EBUSY:  // completions must be collected first
      break;
    case EAGAIN:
    case ENOMEM:
      std::this_thread::sleep_for(kRetryAfter);
      break;
    default:
      if (outcome < 0) return Failure("io_uring_enter", -outcome);
  }
  return Collect(arrived);
}

Status KernelRing::Collect(std::vector<RingSlot*>& arrived) {
  Status failure;
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(&ring_, &completion) == 0) {
    const uint64_t tag = completion->user_data;
    const int outcome = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    if (tag == kWakeTag) {
      PrepareWakeRead();
      continue;
    }
    RingSlot& slot = slots_[tag];
    if (outcome == 0) {
      slot.commit_id_ = slot.headers_->slot.commit_id;
      arrived.push_back(&slot);
      continue;
    }
    Status noted = NoteFailure(slot, outcome);
    if (failure.ok()) {
      failure = std::move(noted);
    } else {
      noted.IgnoreError("the first failure is reported");
    }
  }
  return failure;
}

Status KernelRing::NoteFailure(RingSlot& slot, int outcome) {
  const bool registering = slot.commit_id_ == 0;
  switch (-outcome) {
    case EINTR:
    case EAGAIN:
      PrepareCommand(slot, registering ? kRingRegister : kRingCommitAndFetch);
      return {};
    case ENOTCONN:  // the mount has ended
    case ECONNABORTED:
    case ENODEV:
    case ECANCELED:
      ++ended_slots_;
      return {};
    default:
      ++ended_slots_;
      if (!Connected()) return {};  // the mount ended while the kernel took the reply
      if (!registering) return Failure("the kernel refuses a reply through io_uring", -outcome);
      refused_ = true;
      return {};
  }
}

bool KernelRing::Connected() const {
  pollfd device{.fd = device_, .events = 0, .revents = 0};
  return poll(&device, 1, 0) == 0;
}

}  // namespace siltfs::fuse
