// An Env for tests of concurrency: it forwards all calls to another Env, and calls hooks before
// some of them. This file also has the gates on which hooks wait.
//
// Thread-safety: every call from any thread, but hooks may be set only while no calls run. The
// other Env must outlive this one and its files.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs::testing {

class HookEnv : public Env {
 public:
  using Hook = std::function<void(const std::string& path)>;

  explicit HookEnv(Env& base) : base_(base) {}

  Hook on_open = [](const std::string&) {};
  Hook on_read = [](const std::string&) {};  // a read of a File, or of a queue
  Hook on_begin_sync = [](const std::string&) {};
  Hook on_sync = [](const std::string&) {};
  Hook on_list = [](const std::string&) {};
  std::function<void()> on_queue = [] {};  // a queue is created

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override;
  Status CreateDirectory(const std::string& path) override { return base_.CreateDirectory(path); }
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override {
    on_list(path);
    return base_.ListDirectory(path);
  }
  Status RemoveFile(const std::string& path) override { return base_.RemoveFile(path); }
  Status RemoveDirectory(const std::string& path) override { return base_.RemoveDirectory(path); }
  Status Rename(const std::string& from, const std::string& to) override {
    return base_.Rename(from, to);
  }
  Status SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  Result<FileInfo> GetFileInfo(const std::string& path) override { return base_.GetFileInfo(path); }
  Result<DiskSpace> GetDiskSpace(const std::string& path) override {
    return base_.GetDiskSpace(path);
  }
  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override {
    return base_.LockFile(path);
  }
  // Returns a queue that performs its requests one after another, from the last to the first.
  Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) override;
  int64_t NowNanoseconds() override { return base_.NowNanoseconds(); }
  int64_t MonotonicNanoseconds() override { return base_.MonotonicNanoseconds(); }
  Status FillRandom(MutableByteView out) override { return base_.FillRandom(out); }

 private:
  Env& base_;
};

// Blocks calling threads until it is opened. Waiting times out, so that a test fails rather than
// hangs.
class Gate {
 public:
  void Wait();
  void Open();
  // True if a wait timed out before the gate was opened.
  bool gave_up() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool open_ SILTFS_GUARDED_BY(mutex_) = false;
  bool gave_up_ SILTFS_GUARDED_BY(mutex_) = false;
};

// Blocks calling threads until `wanted` of them wait at once.
class Gathering {
 public:
  explicit Gathering(size_t wanted) : wanted_(wanted) {}
  void Come();
  bool complete() const;

 private:
  const size_t wanted_;
  mutable Mutex mutex_;
  size_t here_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool complete_ SILTFS_GUARDED_BY(mutex_) = false;
  Gate gate_;
};

}  // namespace siltfs::testing
