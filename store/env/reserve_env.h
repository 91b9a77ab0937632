// An Env that gives up a store's reserve (space_reserve.h) piece by piece rather than let a write
// fail for want of space. What the reserve is for is thereby everything that is written through it;
// what may not draw on it asks SpaceReserve::CheckRoom first.
//
// A file that is removed fills the reserve's parts again (SpaceReserve::Restore).
//
// For metadata (SpaceReserve::Use) GetDiskSpace counts as available what the reserve would give:
// metadata asks before it tries again what has met a full disk.
//
// A call that failed with kNoSpace is made again from its beginning: writes say where they write
// to, and whatever makes a name leaves none behind when it fails. A failed Sync is not: what it
// left behind is not known.
//
// Thread-safety, errors, durability: those of the Env below. Ownership: both must outlive it; files
// may not.
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
