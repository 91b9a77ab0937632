// Requests as the kernel sends them, where libfuse does not pass on all they say or is older than
// they are (include/uapi/linux/fuse.h of the kernel; libfuse 3.14 speaks protocol 7.38).
//
// A request libfuse does not know is turned, in place, into the one it knows that has the same
// arguments; a note tells the handler what was really asked. So it is answered like any other:
// counted, logged, refused to strangers by libfuse. The kernel finds the reply's request by number
// alone.
//
// Pure computation on the messages' bytes, any bytes: what is shorter than it should be is left as
// it is, and is libfuse's to refuse. Thread-safety: as that of plain functions.
#pragma once

#include <cstdint>

#include "fs/core/file_system.h"
#include "store/base/bytes.h"

namespace siltfs::fuse {

// FUSE_... of INIT that libfuse 3.14 does not accept: that the file system takes away set-id bits
// and capabilities by itself (which it does not know), that names of one directory are looked up
// and listed side by side (which it is asked to, and forgets to tell), and that what is written
// past the kernel's cache may be mapped all the same (protocol 7.39).
inline constexpr uint64_t kKillPrivilegesOffer = 1U << 28;
inline constexpr uint64_t kParallelDirectoryOffer = 1U << 18;
inline constexpr uint64_t kDirectMmapOffer = uint64_t{1} << 36;
inline constexpr uint64_t kAcceptedOffers =
    kKillPrivilegesOffer | kParallelDirectoryOffer | kDirectMmapOffer;

// What libfuse does not tell the handler of a request.
struct RequestNotes {
  uint64_t offers = 0;          // INIT: which of kAcceptedOffers the kernel has
  bool wants_statx = false;     // GETATTR: it was STATX, and is answered by StatxReply
  bool temporary_file = false;  // CREATE: it was TMPFILE; the name means nothing
  Privileges privileges = Privileges::kKeep;  // WRITE: what it takes from the file
  WriteTimes times = WriteTimes::kNow;        // WRITE: whether it comes from the kernel's cache
};

// Reads a request and turns STATX into GETATTR and TMPFILE into CREATE.
RequestNotes TranslateRequest(MutableByteView message);

// Adds to what follows the header of a successful reply to INIT that these offers of the kernel are
// accepted.
void AcceptOffers(MutableByteView init_reply, uint64_t offers);

// The reply to STATX (protocol 7.39), in the machine's byte order like all that is said to the
// kernel. Times are those of statx(2).
struct StatxTime {
  int64_t seconds;
  uint32_t nanoseconds;
  int32_t reserved;
};
static_assert(sizeof(StatxTime) == 16);

struct StatxReply {
  uint64_t valid_seconds;  // how long the kernel may believe it
  uint32_t valid_nanoseconds;
  uint32_t flags;
  uint64_t spare[2];
  // struct fuse_statx; as struct statx but for the end.
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
