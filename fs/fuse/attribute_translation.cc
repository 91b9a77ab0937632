#include "fs/fuse/attribute_translation.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fs/fuse/handler_context.h"

namespace siltfs::fuse {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr uint32_t kPermissionBits = 07777;
constexpr uint32_t kBlockSize = 4096;

timespec ToTimespec(int64_t nanoseconds) {
  // Rounded down, so that times before 1970 keep their nanoseconds positive.
  int64_t seconds = nanoseconds / kNanosecondsPerSecond;
  int64_t rest = nanoseconds % kNanosecondsPerSecond;
  if (rest < 0) {
    --seconds;
    rest += kNanosecondsPerSecond;
  }
  return {.tv_sec = seconds, .tv_nsec = rest};
}

StatxTime ToStatxTime(int64_t nanoseconds) {
  const timespec time = ToTimespec(nanoseconds);
  return {
      .seconds = time.tv_sec, .nanoseconds = static_cast<uint32_t>(time.tv_nsec), .reserved = 0};
}

// Times outside the years 1677 to 2262 are clamped to that range.
int64_t FromTimespec(const timespec& time) {
  constexpr int64_t kMaxSeconds = INT64_MAX / kNanosecondsPerSecond - 1;
  if (time.tv_sec > kMaxSeconds) return kMaxSeconds * kNanosecondsPerSecond;
  if (time.tv_sec < -kMaxSeconds) return -kMaxSeconds * kNanosecondsPerSecond;
  return time.tv_sec * kNanosecondsPerSecond + time.tv_nsec;
}

}  // namespace

struct stat ToStat(const Attributes& attributes) {
  struct stat stat = {};
  stat.st_ino = attributes.inode;
  stat.st_mode = attributes.mode;
  stat.st_nlink = attributes.links;
  stat.st_uid = attributes.uid;
  stat.st_gid = attributes.gid;
  stat.st_rdev = attributes.device;
  stat.st_size = static_cast<off_t>(attributes.size);
  stat.st_blksize = kBlockSize;
  stat.st_blocks = static_cast<blkcnt_t>((attributes.allocated_bytes + 511) / 512);
  stat.st_atim = ToTimespec(attributes.atime);
  stat.st_mtim = ToTimespec(attributes.mtime);
  stat.st_ctim = ToTimespec(attributes.ctime);
  return stat;
}

StatxReply ToStatx(const AttributeReply& told) {
  const Attributes& attributes = told.attributes;
  const struct stat stat = ToStat(attributes);
  StatxReply reply = {};
  reply.valid_seconds = told.valid_seconds;
  reply.mask = STATX_BASIC_STATS | STATX_BTIME;
  reply.block_size = kBlockSize;
  reply.links = attributes.links;
  reply.uid = attributes.uid;
  reply.gid = attributes.gid;
  reply.mode = static_cast<uint16_t>(attributes.mode);
  reply.inode = attributes.inode;
  reply.size = attributes.size;
  reply.blocks = static_cast<uint64_t>(stat.st_blocks);
  reply.atime = ToStatxTime(attributes.atime);
  reply.btime = ToStatxTime(attributes.btime);
  reply.ctime = ToStatxTime(attributes.ctime);
  reply.mtime = ToStatxTime(attributes.mtime);
  reply.device_major = major(stat.st_rdev);
  reply.device_minor = minor(stat.st_rdev);
  return reply;
}

fuse_entry_param ToEntry(const AttributeReply& told) {
  fuse_entry_param entry = {};
  entry.ino = told.attributes.inode;
  entry.generation = told.attributes.generation;
  entry.attr = ToStat(told.attributes);
  entry.attr_timeout = told.valid_seconds;
  entry.entry_timeout = kForever;
  return entry;
}

AttributeChange ToChange(const struct stat& wanted, int which, int64_t now) {
  AttributeChange change;
  if (which & FUSE_SET_ATTR_MODE) change.mode = wanted.st_mode & kPermissionBits;
  if (which & FUSE_SET_ATTR_UID) change.uid = wanted.st_uid;
  if (which & FUSE_SET_ATTR_GID) change.gid = wanted.st_gid;
  if (which & FUSE_SET_ATTR_SIZE) change.size = static_cast<uint64_t>(wanted.st_size);
  if (which & FUSE_SET_ATTR_ATIME) change.atime = FromTimespec(wanted.st_atim);
  if (which & FUSE_SET_ATTR_MTIME) change.mtime = FromTimespec(wanted.st_mtim);
  if (which & FUSE_SET_ATTR_CTIME) change.ctime = FromTimespec(wanted.st_ctim);
  // FATTR_KILL_SUIDGID, under the name that libfuse gave this bit before the kernel named it.
  if (which & FUSE_SET_ATTR_KILL_SUID) change.kill_privileges = true;
  if (which & FUSE_SET_ATTR_ATIME_NOW) change.atime = now;
  if (which & FUSE_SET_ATTR_MTIME_NOW) change.mtime = now;
  return change;
}

}  // namespace siltfs::fuse
