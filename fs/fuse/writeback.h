// Data that the kernel keeps in its writeback cache, and how to get at it.
//
// Most requests need no care: the kernel writes back before it sends FSYNC, COPY_FILE_RANGE,
// FALLOCATE or the last close of a file. LSEEK (SEEK_DATA, SEEK_HOLE) it sends as things are (Linux
// 6.18), so that freshly written data would be called a hole, and a copy by a program that looks
// for holes would lose them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>

#include "fs/core/file_system.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"

namespace siltfs::fuse {

// Makes the kernel send what it has not written back of a file, and waits until that is answered:
// so never call it on a thread that answers requests. Needs a mount whose owner may open files by
// handle (the superuser); kUnsupported for others.
Status WriteBack(const std::string& mountpoint, InodeNumber inode);

// Which files are open for writing, so that the kernel may hold data of them.
//
// Thread-safety: every call from any thread.
class FilesOpenForWriting {
 public:
  void Add(InodeNumber inode);
  void Remove(InodeNumber inode);
  bool Contains(InodeNumber inode) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<InodeNumber, uint32_t> counts_ SILTFS_GUARDED_BY(mutex_);
};

// A thread, started with the first task, for what may not hold up the threads that answer requests.
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

  Mutex mutex_;
  CondVar changed_;
  bool ending_ SILTFS_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> tasks_ SILTFS_GUARDED_BY(mutex_);
  std::thread thread_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::fuse
