// An Env that passes all calls on to another Env, and lets chosen calls fail. It serves tests on
// the real disk, where other processes and std::filesystem see the files.
//
// Thread-safety: every call from any thread. Files must not outlive their FaultEnv.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/thread_annotations.h"
#include "store/env/env.h"

namespace siltfs::testing {

class FaultEnv : public Env {
 public:
  enum class Call : uint8_t {
    kOpen,
    kRead,
    kWrite,
    kSync,
    kSyncDirectory,
    kChange,  // any call that changes something, except opening the lock file
  };

  explicit FaultEnv(std::unique_ptr<Env> base);
  ~FaultEnv() override;

  // From now on calls of this kind with `part` in their path fail with this code and have no
  // effect.
  void Fail(Call call, std::string part, StatusCode code);
  // From now on writes with `part` in their path write the first half and fail with this code.
  void FailHalfWay(std::string part, StatusCode code);
  void Heal();
  // Replaces the available bytes in GetDiskSpace.
  void SetAvailable(std::optional<uint64_t> bytes);
  // Replaces the result of NowNanoseconds.
  void SetClock(std::optional<int64_t> nanoseconds);
  // Number of calls of this kind so far with `part` in their path, including failed ones.
  uint64_t Count(Call call, std::string_view part) const;

  Result<std::unique_ptr<File>> OpenFile(const std::string& path, OpenOptions options) override;
  Status CreateDirectory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;
  Status RemoveFile(const std::string& path) override;
  Status RemoveDirectory(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status SyncDirectory(const std::string& path) override;
  Result<FileInfo> GetFileInfo(const std::string& path) override;
  Result<DiskSpace> GetDiskSpace(const std::string& path) override;
  Result<std::unique_ptr<FileLock>> LockFile(const std::string& path) override;
  Result<std::unique_ptr<ReadQueue>> NewReadQueue(unsigned depth) override;
  int64_t NowNanoseconds() override;
  int64_t MonotonicNanoseconds() override;
  Status FillRandom(MutableByteView out) override;

  // Called by files of this Env: counts the call, and returns the failure set for it.
  virtual Status Note(Call call, const std::string& path) const;
  // For a write: sets `half` if it must write its first half before it fails.
  Status NoteWrite(const std::string& path, bool& half) const;

  Env& wrapped() { return *base_; }

 protected:
  Env& base() { return *base_; }

 private:
  struct Fault {
    Call call;
    std::string part;
    StatusCode code;
    bool half = false;
  };
  struct Counted {
    Call call;
    std::string path;
    uint64_t count;
  };

  Status Note(Call call, const std::string& path, bool& half) const;

  const std::unique_ptr<Env> base_;
  mutable Mutex mutex_;
  std::vector<Fault> faults_ SILTFS_GUARDED_BY(mutex_);
  mutable std::vector<Counted> counted_ SILTFS_GUARDED_BY(mutex_);
  std::optional<uint64_t> available_ SILTFS_GUARDED_BY(mutex_);
  std::optional<int64_t> clock_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
