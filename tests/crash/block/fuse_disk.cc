#include "tests/crash/block/fuse_disk.h"

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>

#include <cstring>

#include "tests/crash/kill/failure.h"

namespace siltfs::blocktest {
namespace {

constexpr fuse_ino_t kDisk = 2;
constexpr double kForLong = 1e6;

FuseDisk& DiskOf(fuse_req_t request) { return *static_cast<FuseDisk*>(fuse_req_userdata(request)); }

struct stat AttributesOf(fuse_req_t request, fuse_ino_t inode) {
  struct stat attributes {};
  attributes.st_ino = inode;
  attributes.st_mode = inode == kDisk ? S_IFREG | 0600 : S_IFDIR | 0700;
  attributes.st_nlink = 1;
  attributes.st_blksize = kPageBytes;
  if (inode == kDisk) {
    attributes.st_size = static_cast<off_t>(DiskOf(request).size());
    attributes.st_blocks = attributes.st_size / 512;
  }
  return attributes;
}

void Lookup(fuse_req_t request, fuse_ino_t, const char* name) {
  if (std::strcmp(name, "disk") != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kDisk;
  entry.attr = AttributesOf(request, kDisk);
  entry.attr_timeout = entry.entry_timeout = kForLong;
  fuse_reply_entry(request, &entry);
}

void GetAttributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  const struct stat attributes = AttributesOf(request, inode);
  fuse_reply_attr(request, &attributes, kForLong);
}

void SetAttributes(fuse_req_t request, fuse_ino_t inode, struct stat*, int, fuse_file_info* file) {
  GetAttributes(request, inode, file);
}

void Open(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  // The kernel must not cache this file. With a cache, writes would arrive out of order, and reads
  // would miss the bytes of the next device.
  file->direct_io = 1;
  fuse_reply_open(request, file);
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  FuseDisk& disk = DiskOf(request);
  const auto begin = std::min(static_cast<uint64_t>(offset), disk.size());
  Bytes bytes(std::min<uint64_t>(size, disk.size() - begin));
  const int error = disk.With([&](Device& device) { return device.Read(begin, bytes); });
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

void Write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset,
           fuse_file_info*) {
  FuseDisk& disk = DiskOf(request);
  const auto begin = static_cast<uint64_t>(offset);
  if (begin + size > disk.size()) {
    fuse_reply_err(request, ENOSPC);
    return;
  }
  const ByteView bytes(reinterpret_cast<const uint8_t*>(data), size);
  const int error = disk.With([&](Device& device) { return device.Write(begin, bytes); });
  if (error != 0) {
    fuse_reply_err(request, error);
  } else {
    fuse_reply_write(request, size);
  }
}

void Allocate(fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t length,
              fuse_file_info*) {
  if ((mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
    fuse_reply_err(request, EOPNOTSUPP);
    return;
  }
  FuseDisk& disk = DiskOf(request);
  const auto begin = static_cast<uint64_t>(offset);
  const bool inside = begin <= disk.size() && static_cast<uint64_t>(length) <= disk.size() - begin;
  const bool zeroes = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  int error = inside ? 0 : ENOSPC;
  if (inside && zeroes) {
    error = disk.With(
        [&](Device& device) { return device.Zero(begin, static_cast<uint64_t>(length)); });
  }
  fuse_reply_err(request, error);
}

void Sync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(request, DiskOf(request).With([](Device& device) { return device.Flush(); }));
}

void TellSpace(fuse_req_t request, fuse_ino_t) {
  struct statvfs statistics {};
  statistics.f_bsize = statistics.f_frsize = kPageBytes;
  statistics.f_blocks = DiskOf(request).size() / kPageBytes;
  fuse_reply_statfs(request, &statistics);
}

fuse_lowlevel_ops Operations() {
  fuse_lowlevel_ops operations{};
  operations.lookup = Lookup;
  operations.getattr = GetAttributes;
  operations.setattr = SetAttributes;
  operations.open = Open;
  operations.read = Read;
  operations.write = Write;
  operations.fallocate = Allocate;
  operations.fsync = Sync;
  operations.statfs = TellSpace;
  return operations;
}

}  // namespace

FuseDisk::FuseDisk(std::string directory, uint64_t size)
    : directory_(std::move(directory)), size_(size) {
  const char* words[] = {"siltfs-blocktest", "-o", "fsname=siltfs-blocktest"};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(words));
  const fuse_lowlevel_ops operations = Operations();
  session_ = fuse_session_new(&arguments, &operations, sizeof(operations), this);
  if (session_ == nullptr) throw killtest::Failure("libfuse cannot make a session");
  if (fuse_session_mount(session_, directory_.c_str()) != 0) {
    fuse_session_destroy(session_);
    throw killtest::Failure(directory_ + ": the FUSE file system cannot be mounted");
  }
  thread_ = std::thread([this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    // When this thread allocates memory, the kernel must not write to the file systems above it to
    // free memory, because these writes would wait for this thread.
    (void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    fuse_session_loop(session_);
  });
}

FuseDisk::~FuseDisk() {
  // The unmounted session loses its connection; this ends its thread.
  fuse_session_exit(session_);
  umount2(directory_.c_str(), MNT_DETACH);
  thread_.join();
  fuse_session_destroy(session_);
}

void FuseDisk::Serve(Device* device) {
  const std::lock_guard lock(mutex_);
  device_ = device;
}

}  // namespace siltfs::blocktest
