// An Env that gives up a store's reserve (space_reserve.h) piece by piece before a write fails with
// kNoSpace. All writes through it can use the reserve. A caller that must not use the reserve calls
// SpaceReserve::CheckRoom first.
//
// Removing a file refills the parts of the reserve (SpaceReserve::Restore).
//
// With Use::kMetadata, GetDiskSpace also counts the bytes that the reserve can give up as
// available. The reason: after a write that found the disk full, the metadata engine asks for the
// free space before it writes again.
//
// A call that failed with kNoSpace is retried as a whole: writes have explicit offsets, and calls
// that create a name leave none behind on failure. A failed Sync is not retried, because its effect
// is unknown.
//
// Thread-safety, errors, durability: those of `base`. Ownership: `base` and `reserve` must outlive
// this Env and all its files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/env/env.h"
#include "store/env/space_reserve.h"

namespace siltfs {

class ReserveEnv : public Env {
 public:
  ReserveEnv(Env& base, SpaceReserve& reserve, SpaceReserve::Use use = SpaceReserve::Use::kData)
      : base_(base), reserve_(reserve), use_(use) {}

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

 private:
  Env& base_;
  SpaceReserve& reserve_;
  const SpaceReserve::Use use_;
};

}  // namespace siltfs
