#include "fs/fuse/kernel_messages.h"

#include <linux/fuse.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace siltfs::fuse {
namespace {

// Protocol 7.39; not in every <linux/fuse.h> yet.
constexpr uint32_t kStatx = 52;
struct StatxArguments {
  uint32_t getattr_flags;  // the fields to `handle` are those of GETATTR
  uint32_t reserved;
  uint64_t handle;
  uint32_t flags;
  uint32_t mask;
};
static_assert(sizeof(StatxArguments) == 24);
static_assert(offsetof(StatxArguments, handle) == offsetof(fuse_getattr_in, fh));

static_assert(kKillPrivilegesOffer == FUSE_HANDLE_KILLPRIV_V2);
static_assert(kParallelDirectoryOffer == FUSE_PARALLEL_DIROPS);

constexpr size_t kFlagsEnd = offsetof(fuse_init_in, flags) + sizeof(fuse_init_in::flags);
// The upper 32 flags; they exist only if FUSE_INIT_EXT is among the lower 32.
constexpr size_t kOffered2 = offsetof(fuse_init_in, flags2);
constexpr size_t kAccepted2 = offsetof(fuse_init_out, flags2);

template <typename T>
T ReadAt(ByteView bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void WriteAt(MutableByteView bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

void SetOpcode(MutableByteView message, uint32_t opcode) {
  std::memcpy(message.data() + offsetof(fuse_in_header, opcode), &opcode, sizeof opcode);
}

Privileges PrivilegesOf(uint32_t write_flags) {
  if ((write_flags & FUSE_WRITE_KILL_SUIDGID) != 0) return Privileges::kDropAll;
  // The write comes from the kernel's cache. The kernel removed the capability when the program
  // wrote, and the file may have got a new capability since then.
  if ((write_flags & FUSE_WRITE_CACHE) != 0) return Privileges::kKeep;
  return Privileges::kDropCapability;
}

// `arguments` are those of INIT, at least kFlagsEnd long.
uint64_t OffersIn(ByteView arguments) {
  const auto flags = ReadAt<uint32_t>(arguments, offsetof(fuse_init_in, flags));
  if ((flags & FUSE_INIT_EXT) == 0 || arguments.size() < kOffered2 + sizeof(uint32_t)) return flags;
  return flags | uint64_t{ReadAt<uint32_t>(arguments, kOffered2)} << 32;
}

}  // namespace

RequestNotes TranslateRequest(MutableByteView message) {
  RequestNotes notes;
  constexpr size_t kHeader = sizeof(fuse_in_header);
  if (message.size() < kHeader) return notes;
  const MutableByteView arguments = message.subspan(kHeader);
  switch (ReadAt<uint32_t>(message, offsetof(fuse_in_header, opcode))) {
    case FUSE_INIT:
      if (arguments.size() < kFlagsEnd) break;
      notes.offers = OffersIn(arguments) & kAcceptedOffers;
      break;
    case FUSE_WRITE: {
      if (arguments.size() < sizeof(fuse_write_in)) break;
      const auto flags = ReadAt<uint32_t>(arguments, offsetof(fuse_write_in, write_flags));
      notes.privileges = PrivilegesOf(flags);
      // The kernel itself sets the times for cached writes, and sends them by SETATTR.
      if ((flags & FUSE_WRITE_CACHE) != 0) notes.times = WriteTimes::kMayKeep;
      break;
    }
    case FUSE_TMPFILE:
      // A name, which is ignored, must follow and end with a zero.
      if (arguments.size() <= sizeof(fuse_create_in) || arguments.back() != 0) break;
      SetOpcode(message, FUSE_CREATE);
      notes.temporary_file = true;
      break;
    case kStatx:
      if (arguments.size() < sizeof(StatxArguments)) break;
      SetOpcode(message, FUSE_GETATTR);
      notes.wants_statx = true;
      break;
    default:
      break;
  }
  return notes;
}

void AcceptOffers(MutableByteView init_reply, uint64_t offers) {
  constexpr size_t kAt = offsetof(fuse_init_out, flags);
  if (init_reply.size() < kAt + sizeof(uint32_t)) return;
  auto flags = ReadAt<uint32_t>(init_reply, kAt) | static_cast<uint32_t>(offers);
  const auto more = static_cast<uint32_t>(offers >> 32);
  if (more != 0 && init_reply.size() >= kAccepted2 + sizeof(uint32_t)) {
    flags |= FUSE_INIT_EXT;
    WriteAt(init_reply, kAccepted2, ReadAt<uint32_t>(init_reply, kAccepted2) | more);
  }
  WriteAt(init_reply, kAt, flags);
}

size_t LargestPayload(ByteView init_reply) {
  constexpr size_t kPageBytes = 4096;
  constexpr size_t kDefaultPages = 32;  // FUSE_DEFAULT_MAX_PAGES_PER_REQ of the kernel
  constexpr size_t kMaxPagesAt = offsetof(fuse_init_out, max_pages);
  fuse_init_out reply = {};
  std::memcpy(&reply, init_reply.data(), std::min(init_reply.size(), sizeof reply));
  const bool tells_pages = (reply.flags & FUSE_MAX_PAGES) != 0 && init_reply.size() > kMaxPagesAt;
  const size_t pages = tells_pages ? reply.max_pages : kDefaultPages;
  return std::max<size_t>(reply.max_write, pages * kPageBytes);
}

}  // namespace siltfs::fuse
