// Structures and commands of FUSE over io_uring (include/uapi/linux/fuse.h of Linux 6.14, protocol
// 7.42), which older system headers lack. All numbers are in the machine's byte order.
//
// A slot of a ring is registered with two buffers. The kernel writes each request into them: the
// header and the arguments of the operation into the first buffer, names and data into the second
// one. The daemon writes the reply into the same buffers, and one command hands in the reply and
// asks for the next request.
#pragma once

#include <cstddef>
#include <cstdint>

namespace siltfs::fuse {

// How the reply of a slot is described, and the request in it.
struct RingSlotHeader {
  uint64_t flags;
  uint64_t commit_id;      // names the request in kRingCommitAndFetch
  uint32_t payload_bytes;  // of the request; of the reply's body
  uint32_t padding;
  uint64_t reserved;
};
static_assert(sizeof(RingSlotHeader) == 32);

// The first buffer of a slot.
struct RingHeaders {
  uint8_t in_out[128];     // fuse_in_header, then fuse_out_header
  uint8_t arguments[128];  // of the operation
  RingSlotHeader slot;
};
static_assert(sizeof(RingHeaders) == 288);

// Values of cmd_op.
inline constexpr uint32_t kRingRegister = 1;
inline constexpr uint32_t kRingCommitAndFetch = 2;

// The command area of a submission.
struct RingCommand {
  uint64_t flags;
  uint64_t commit_id;
  uint16_t queue;  // the kernel has one for each possible processor
  uint8_t padding[6];
};
static_assert(sizeof(RingCommand) == 24);

// The kernel refuses smaller second buffers (FUSE_MIN_READ_BUFFER).
inline constexpr size_t kMinRingPayloadBytes = 8192;

}  // namespace siltfs::fuse
