// Parses raw kernel requests, for requests and flags that libfuse does not know or pass on
// (include/uapi/linux/fuse.h of the kernel; libfuse 3.14 speaks protocol 7.38).
//
// A request that libfuse does not know is changed, in place, into a known request with the same
// arguments. A note tells the handler what the original request was. So libfuse counts and logs the
// request like any other, and refuses it if the caller has no access to the mount. The kernel finds
// the request of a reply by the request's number alone, so it does not notice the change.
//
// Pure computation on arbitrary bytes: a message that is too short is left unchanged, and libfuse
// refuses it. Thread-safety: the functions have no state.
#pragma once

#include <cstdint>

#include "fs/interface/file_system.h"
#include "store/base/bytes.h"

namespace siltfs::fuse {

// FUSE_... flags that the kernel offers in INIT and libfuse 3.14 does not accept. The first says
// that the file system removes set-id bits and capabilities itself; libfuse does not know it. The
// second lets the kernel look up and list names of one directory in parallel; the daemon can ask
// libfuse for it, but libfuse does not send the flag. The third allows mmap of a file that is open
// with direct I/O (protocol 7.39). The fourth is FUSE over io_uring (protocol 7.42), which is
// accepted only if the rings exist (ring_transport.h).
inline constexpr uint64_t kKillPrivilegesOffer = 1U << 28;
inline constexpr uint64_t kParallelDirectoryOffer = 1U << 18;
inline constexpr uint64_t kDirectMmapOffer = uint64_t{1} << 36;
inline constexpr uint64_t kRingOffer = uint64_t{1} << 41;
inline constexpr uint64_t kAcceptedOffers =
    kKillPrivilegesOffer | kParallelDirectoryOffer | kDirectMmapOffer | kRingOffer;

// Facts about a request that libfuse does not pass to the handler.
struct RequestNotes {
  uint64_t offers = 0;          // INIT: which of kAcceptedOffers the kernel offers
  bool wants_statx = false;     // GETATTR: it was STATX, and is answered by StatxReply
  bool temporary_file = false;  // CREATE: it was TMPFILE; ignore the name
  Privileges privileges = Privileges::kKeep;  // WRITE: which ones the file loses
  WriteTimes times = WriteTimes::kNow;        // WRITE: whether it comes from the kernel's cache
};

// Reads a request and turns STATX into GETATTR and TMPFILE into CREATE.
RequestNotes TranslateRequest(MutableByteView message);

// Adds the accepted offers to the body of a successful reply to INIT.
void AcceptOffers(MutableByteView init_reply, uint64_t offers);

// Returns the most bytes of names and data in one request or reply after this reply to INIT.
size_t LargestPayload(ByteView init_reply);

// The reply to STATX (protocol 7.39), in the machine's byte order, like all messages to the kernel.
// Times are those of statx(2).
struct StatxTime {
  int64_t seconds;
  uint32_t nanoseconds;
  int32_t reserved;
};
static_assert(sizeof(StatxTime) == 16);

struct StatxReply {
  uint64_t valid_seconds;  // how long the kernel may cache it
  uint32_t valid_nanoseconds;
  uint32_t flags;
  uint64_t spare[2];
  // The fields of struct fuse_statx, which is like struct statx except for its end.
  uint32_t mask;  // STATX_...: which of these are set
  uint32_t block_size;
  uint64_t attributes;
  uint32_t links;
  uint32_t uid;
  uint32_t gid;
  uint16_t mode;
  uint16_t spare_mode;
  uint64_t inode;
  uint64_t size;
  uint64_t blocks;  // of 512 bytes
  uint64_t attributes_mask;
  StatxTime atime;
  StatxTime btime;
  StatxTime ctime;
  StatxTime mtime;
  uint32_t device_major;  // of a device node
  uint32_t device_minor;
  uint32_t file_system_major;
  uint32_t file_system_minor;
  uint64_t spare_end[14];
};
static_assert(sizeof(StatxReply) == 32 + 256);

}  // namespace siltfs::fuse
