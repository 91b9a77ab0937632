// Runs `siltfs import`: finds the target in the store, starts the workers, and adds up.
//
// Thread-safety: Run is called once; Interrupt from any thread, also before Run. Errors: those that
// prevent or end the import; errors of single files go to the report. kInterrupted after Interrupt.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/control/client.h"
#include "store/base/result.h"
#include "store/base/thread_annotations.h"
#include "tools/import/import_job.h"
#include "tools/import/import_worker.h"
#include "tools/import/transfer_connection.h"

namespace siltfs {

struct ImportArguments {
  std::vector<std::string> sources;
  std::string target;     // a directory on a mount; it may be missing
  std::string reference;  // empty: none
  ImportOptions options;
  // Finds the daemon of the mount around a path.
  std::function<Result<control::DaemonAddress>(const std::string& path)> find_daemon;
};

// A directory on a mount of siltfs.
struct MountedDirectory {
  control::DaemonAddress address;
  uint64_t device = 0;  // of the mount, as programs see it
  InodeNumber inode = 0;
};

class ImportRun {
 public:
  ImportRun(ImportArguments arguments, ImportJob::Report report, ImportJob::Tell tell);

  // Returns the plain bytes of new chunks.
  Result<uint64_t> Run();
  void Interrupt();
  ImportTotals& totals() { return job_->totals(); }

 private:
  struct Target {
    MountedDirectory directory;  // the target, or its parent if it is missing
    std::string missing;         // the target's name if it is missing
  };
  // Finds the directory at `path`. The kernel resolves the path, so with the user's permissions.
  // kNotADirectory or kNotFound if there is none.
  Result<MountedDirectory> FindDirectory(const std::string& path) const;
  Result<Target> FindTarget() const;
  Status CheckSources() const;
  Result<std::vector<ImportItem>> OpenSources(InodeNumber target, InodeNumber reference);
  Result<uint64_t> RunWorkers(const Target& target, InodeNumber reference);

  const ImportArguments arguments_;
  const ImportJob::Report report_;
  const ImportJob::Tell tell_;
  std::unique_ptr<ImportJob> job_;
  Mutex mutex_;
  TransferConnection* connection_ SILTFS_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace siltfs
