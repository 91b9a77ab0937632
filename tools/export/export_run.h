// Runs `siltfs export`: walks the tree in the store, makes directories and entries, collects the
// batches of files, and starts the writers.
//
// Thread-safety: Run is called once; Interrupt from any thread, also before Run. Errors: those that
// prevent or end the export; errors of single files go to the report. kInterrupted after Interrupt.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fs/control/client.h"
#include "fs/transfer/entry_record.h"
#include "store/base/thread_annotations.h"
#include "tools/export/export_job.h"
#include "tools/export/export_writer.h"
#include "tools/import/transfer_connection.h"

namespace siltfs {

struct ExportArguments {
  control::DaemonAddress address;
  InodeNumber source = 0;  // the directory in the store
  std::string target;      // the directory that gets its contents
  bool verify = false;
  size_t open_files = 0;  // the limit of this process
};

class ExportRun {
 public:
  ExportRun(ExportArguments arguments, ExportJob::Report report)
      : arguments_(std::move(arguments)), job_(arguments_.verify, std::move(report)) {}

  Status Run();
  void Interrupt();
  ExportTotals& totals() { return job_.totals(); }

 private:
  // A directory; it gets its attributes at the end, when its entries no longer change it.
  struct Directory {
    std::shared_ptr<const Directory> parent;  // null for the target
    std::string name;
    std::string path;  // for messages
    InodeNumber inode = 0;
    SourceAttributes attributes;
    std::vector<SourceXattr> xattrs;
  };
  using DirectoryPtr = std::shared_ptr<const Directory>;
  // Another name of a file that is exported.
  struct Link {
    DirectoryPtr directory;
    std::string name;
    InodeNumber inode = 0;
  };

  Status Collect();
  Status ExportDirectory(const DirectoryPtr& directory);
  Status ExportEntry(const DirectoryPtr& directory,
                     const std::shared_ptr<const TargetDirectory>& target,
                     const transfer::DecodedRecord& record);
  Status BeginFile(const DirectoryPtr& directory,
                   const std::shared_ptr<const TargetDirectory>& target, const std::string& name,
                   const transfer::DecodedRecord& record);
  // How many files a batch may have, so that all open files are within the limit: those to locate,
  // those of three batches, and those of the program.
  size_t MostFiles() const;
  // Finds the chunks of the files that wait for it, and posts batches.
  Status LocateAll();
  Status PostBatch();
  void MakeLinks();
  void FinishDirectories();
  Result<std::shared_ptr<const TargetDirectory>> Open(const Directory& directory) const;
  Result<transfer::Answer> Call(transfer::Request request, std::string_view payload);

  const ExportArguments arguments_;
  ExportJob job_;
  std::shared_ptr<const TargetDirectory> root_;
  std::unique_ptr<TransferConnection> connection_;
  LaneClient* lane_ = nullptr;
  std::unique_ptr<ExportWriter> finisher_;  // finishes files without chunks
  std::vector<DirectoryPtr> waiting_;       // directories to list
  std::vector<DirectoryPtr> directories_;   // all, parents first
  std::map<InodeNumber, std::pair<DirectoryPtr, std::string>> linked_;  // the first names
  std::vector<Link> links_;
  std::vector<ExportFilePtr> to_locate_;
  ExportBatch batch_;
  std::vector<ExportFilePtr> complete_;  // all of whose parts are in the batch, or written
  uint64_t batch_bytes_ = 0;
  size_t batch_files_ = 0;
  Mutex mutex_;
  TransferConnection* interruptible_ SILTFS_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace siltfs
