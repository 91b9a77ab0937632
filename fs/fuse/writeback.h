// Forces data out of the kernel's writeback cache.
//
// For most requests this is not necessary: the kernel writes a file's dirty data back before it
// sends FSYNC, COPY_FILE_RANGE, FALLOCATE or the last close. But it sends LSEEK (SEEK_DATA,
// SEEK_HOLE) without writing back (seen in Linux 6.18). So data that was just written would be
// reported as a hole, and a program that skips holes when it copies would lose this data.
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

// From this minor version of the protocol on (Linux 6.16), the kernel counts a page as written back
// when the file system has answered the WRITE. Older kernels count a page as written back when they
// have copied it, so WriteBack could not wait for the answer. On all kernels, closing a file waits
// for the answers. But closing also waits for the inode's lock, which the caller of lseek holds.
inline constexpr unsigned kFirstProtocolToAwait = 44;

// An inode as file handles name it.
struct KernelInode {
  InodeNumber number = 0;
  uint64_t generation = 0;
};

// Makes the kernel send a file's dirty data, and waits until the requests are answered. On return,
// this function has no file of the mount open.
//
// Never call it on a thread that answers requests. `device` is the mount's device: if another mount
// covers the mountpoint, the device differs, and the result is kUnsupported. The result is
// kUnsupported, too, if this process may not open files by handle, which needs the superuser.
Status WriteBack(const std::string& mountpoint, uint64_t device, const KernelInode& inode);

// As WriteBack, for several files and on any kernel version. Skips files that no longer exist.
// Waits for the files' locks. So never call it to answer a request whose caller may hold such a
// lock. kIoError if data could not be written back.
Status WriteBackFiles(const std::string& mountpoint, uint64_t device,
                      const std::vector<KernelInode>& inodes);

// Returns when the kernel has no unanswered request of this mount. It is for processes that may not
// open files by handle. Requests of all programs count, so the result is kInUse if requests follow
// each other without a pause for a minute. kUnsupported if the kernel does not report the number of
// requests (the file system fusectl is not mounted).
Status WaitUntilAnswered(uint64_t device);

// Returns the device of the mount, without sending a request to the daemon; 0 if unknown.
uint64_t DeviceOf(const std::string& mountpoint);

// Tracks which files are open for writing, because the kernel may have dirty data of these files.
//
// Thread-safety: every call from any thread.
class FilesOpenForWriting {
 public:
  void Add(InodeNumber inode);
  // Returns whether this was the last handle of the file that could write.
  bool Remove(InodeNumber inode);
  bool Contains(InodeNumber inode) const;
  std::vector<InodeNumber> All() const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, uint32_t> counts_ SILTFS_GUARDED_BY(mutex_);
};

// Runs tasks on up to kMaxThreads threads of its own, which are started on demand. So a task that
// waits delays neither the threads that answer requests nor, up to this number, other tasks.
//
// Thread-safety: every call from any thread.
class BackgroundTasks {
 public:
  BackgroundTasks() = default;
  ~BackgroundTasks() { Finish(); }
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  // False after Finish: the task is not run.
  [[nodiscard]] bool Add(std::function<void()> task);
  // Returns when all added tasks are done.
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
