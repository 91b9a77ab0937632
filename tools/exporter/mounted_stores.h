// The metrics of all stores that are mounted in this mount namespace.
//
// Thread-safety: every call from any thread. One call at a time asks the daemons, and calls that
// come meanwhile, or up to `reuse` later, get the same figures. So many clients do not burden the
// daemons. Memory: some 20 KiB a store.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "tools/siltfs/metrics_text.h"

namespace siltfs {

class MountedStores {
 public:
  struct Options {
    // How long to wait for a daemon; less than the 10 seconds that Prometheus waits by default.
    std::chrono::milliseconds answer{8000};
    std::chrono::milliseconds reuse{1000};
  };
  explicit MountedStores(const Options& options) : options_(options) {}

  // A text of tools/siltfs/metrics_text.h. A store whose daemon does not answer has only
  // siltfs_up with the value 0. Errors: those of reading the mount table.
  Result<std::string> Metrics(MetricsFormat format) SILTFS_EXCLUDES(mutex_);

 private:
  Result<std::vector<StoreStatistics>> Collect() const;

  const Options options_;
  Mutex mutex_;
  std::optional<std::vector<StoreStatistics>> statistics_ SILTFS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point made_ SILTFS_GUARDED_BY(mutex_);
};

}  // namespace siltfs
