// Quotas of directories (docs/quotas.md).
//
// Thread-safety: every call from any thread. Ownership: belongs to the FileSystem
// (FileSystem::quotas). Errors: as stated; changes return kReadOnly if the store is read-only, and
// kInUse if an operation does not end within a second. Durability: changes are durable on return.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/result.h"

namespace siltfs {

struct QuotaInfo {
  InodeNumber directory = 0;
  std::string path;          // from the root, with a slash at the end; empty if it cannot be found
  uint64_t bytes_limit = 0;  // 0: no limit
  uint64_t files_limit = 0;  // as well
  uint64_t bytes = 0;
  uint64_t files = 0;
};

struct WantedLimits {
  uint64_t bytes = 0;  // 0: no limit
  uint64_t files = 0;  // as well
};

class DirectoryQuotas {
 public:
  virtual ~DirectoryQuotas() = default;

  // Gives the directory a quota, or its quota other limits. For a new quota, everything below is
  // counted while operations run; it has effect from the return on. `check` is called at intervals,
  // and may call operations; if it fails, there is no quota, and its error is returned.
  // kInvalidArgument if another directory with a quota is above or below, or the usage is too large
  // to be counted; kInUse while another call counts; kAborted if a rollback has ended the count;
  // kNotADirectory; kNotFound or kStale for a directory that was removed.
  virtual Result<QuotaInfo> Set(InodeNumber directory, const WantedLimits& limits,
                                const std::function<Status()>& check) = 0;
  // kNoAttribute if the directory has no quota.
  virtual Status Remove(InodeNumber directory) = 0;
  // All quotas, in the order in which they were set.
  virtual Result<std::vector<QuotaInfo>> List() = 0;
  // The quota that this inode counts against; nullopt if there is none.
  virtual Result<std::optional<QuotaInfo>> Of(InodeNumber inode) = 0;
  // The inodes that the running Set has counted; 0 if none runs.
  virtual uint64_t counted() const = 0;
};

}  // namespace siltfs
