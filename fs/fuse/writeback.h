// Data that the kernel keeps in its writeback cache, and how to get at it.
//
// Most requests need no care: the kernel writes back before it sends FSYNC, COPY_FILE_RANGE,
// FALLOCATE or the last close of a file. LSEEK (SEEK_DATA, SEEK_HOLE) it sends as things are (seen
// in Linux 6.18), so that freshly written data would be called a hole, and a copy by a program that
// looks for holes would lose them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fs/core/file_system.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

// Kernels from this minor version of the protocol on (Linux 6.16) call a page written back when the
// file system has answered. Older ones do when they have copied it, so that nobody can wait for the
// answer, and closing a file there waits for the inode's lock, which the caller of lseek holds.
inline constexpr unsigned kFirstProtocolToAwait = 44;

// Makes the kernel send what it has not written back of a file, and waits until that is answered;
// nothing of the mount is open any more when it returns.
//
// Never on a thread that answers requests. `device` is the mount's own, lest the file be sought in
// another one that lies over its mountpoint. Needs a mount whose owner may open files by handle
// (the superuser); kUnsupported for others.
Status WriteBack(const std::string& mountpoint, uint64_t device, InodeNumber inode);

// The same for several files, whatever their number and the kernel's version; files that are gone
// meanwhile do not count. Waits for the files' locks: never on behalf of a request whose caller may
// hold one. kIoError where data could not be written back.
Status WriteBackFiles(const std::string& mountpoint, uint64_t device,
                      const std::vector<InodeNumber>& inodes);

// Returns when the kernel has no request of this mount that is not answered. For a mount whose
// owner may not open files by handle. Requests of other callers count, too: kInUse if they leave no
// gap for a while, kUnsupported where the kernel does not tell (the file system fusectl is not
// mounted).
Status WaitUntilAnswered(uint64_t device);

// The device of what is mounted there, without asking it; 0 if that cannot be told.
uint64_t DeviceOf(const std::string& mountpoint);

// Which files are open for writing, so that the kernel may hold data of them.
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

// Threads, started as they are needed, for what may not hold up those that answer requests, nor a
// few of its kind each other.
//
// Thread-safety: every call from any thread.
class BackgroundTasks {
 public:
  BackgroundTasks() = default;
  ~BackgroundTasks() { Finish(); }
  BackgroundTasks(const BackgroundTasks&) = delete;
  BackgroundTasks& operator=(const BackgroundTasks&) = delete;

  void Add(std::function<void()> task);
  // Returns when all that was added is done. No Add may follow.
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
