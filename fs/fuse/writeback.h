// Forces data out of the kernel's writeback cache.
//
// Most requests need no care: the kernel writes back before it sends FSYNC, COPY_FILE_RANGE,
// FALLOCATE or the last close of a file. But it sends LSEEK (SEEK_DATA, SEEK_HOLE) without writing
// back (seen in Linux 6.18). So freshly written data would be reported as a hole, and a program
// that copies around holes would lose them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

// Kernels from this minor version of the protocol on (Linux 6.16) count a page as written back when
// the file system has answered. Older kernels count it when they have copied it, so no caller can
// wait for the answer. Closing a file there waits for the inode's lock, which the caller of lseek
// holds.
inline constexpr unsigned kFirstProtocolToAwait = 44;

// Makes the kernel send a file's dirty data, and waits until the requests are answered. On return,
// this function has no file of the mount open.
//
// Never call it on a thread that answers requests. `device` is the mount's device; it prevents
// opening the file in another mount over the same mountpoint. The owner of the mount must be able
// to open files by handle (the superuser); otherwise kUnsupported.
Status WriteBack(const std::string& mountpoint, uint64_t device, InodeNumber inode);

// As WriteBack, for several files and on any kernel version; files deleted meanwhile are skipped.
// Waits for the files' locks: never call it for a request of a caller that may hold one. kIoError
// if data could not be written back.
Status WriteBackFiles(const std::string& mountpoint, uint64_t device,
                      const std::vector<InodeNumber>& inodes);

// Returns when the kernel has no unanswered request of this mount. For mounts with an owner that
// may not open files by handle. Requests of other programs count, too: kInUse if they leave no gap
// for a while. kUnsupported if the kernel does not report them (the file system fusectl is not
// mounted).
Status WaitUntilAnswered(uint64_t device);

// The device of the mount, read without a request to it; 0 if unknown.
uint64_t DeviceOf(const std::string& mountpoint);

// Tracks which files are open for writing: the kernel may hold dirty data of them.
//
// Thread-safety: every call from any thread.
class FilesOpenForWriting {
 public:
  void Add(InodeNumber inode);
  void Remove(InodeNumber inode);
  bool Contains(InodeNumber inode) const;
  std::vector<InodeNumber> All() const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, uint32_t> counts_ SILTFS_GUARDED_BY(mutex_);
};

// Threads, started on demand, for tasks that may not block the threads that answer requests, nor
// each other.
//
// Thread-safety: every call from any thread.
class BackgroundTasks {
 public:
  BackgroundTasks() = default;
  ~BackgroundTasks() { Finish(); }
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  void Add(std::function<void()> task);
  // Returns when all added tasks are done. No Add may follow.
  void Finish();

 private:
  void Run();

  static constexpr size_t kMaxThreads = 8;

  Mutex mutex_;
  CondVar changed_;
  bool ending_ SILTFS_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ SILTFS_GUARDED_BY(mutex_);
  size_t idle_ SILTFS_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::fuse
