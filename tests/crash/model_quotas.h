// The DirectoryQuotas of ModelFileSystem. It counts inodes, so it predicts which steps fail because
// of a limit of files. It does not count bytes: how many bytes of a file count depends on what was
// folded. What is used is counted by fsck, too, which checks each surviving store.
//
// Thread-safety: every call from any thread. Errors: those of DirectoryQuotas.
#pragma once

#include "fs/interface/directory_quotas.h"
#include "store/base/thread_annotations.h"
#include "tests/support/memory_inodes.h"

namespace siltfs::testing {

class ModelQuotas final : public DirectoryQuotas {
 public:
  // The arguments must outlive it; `mutex` guards `inodes`.
  ModelQuotas(Mutex& mutex, MemoryInodes& inodes) : mutex_(mutex), inodes_(inodes) {}

  Result<QuotaInfo> Set(InodeNumber directory, const WantedLimits& limits,
                        const std::function<Status()>& check) override;
  Status Remove(InodeNumber directory) override;
  Result<std::vector<QuotaInfo>> List() override;
  // Finds only the quota of the directory itself.
  Result<std::optional<QuotaInfo>> Of(InodeNumber inode) override;
  uint64_t counted() const override { return 0; }

 private:
  Mutex& mutex_;
  MemoryInodes& inodes_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs::testing
