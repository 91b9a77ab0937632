// What one run of `siltfs import` does and counts: its options, the totals, the errors, the
// directories that wait to be read, and the files with several names.
//
// Thread-safety: every call from any thread, unless stated otherwise. Ownership: one ImportJob is
// shared by the threads of a run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/interface/file_system.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"
#include "store/env/source_tree.h"
#include "tools/import/exclude_patterns.h"

namespace siltfs {

struct ImportOptions {
  bool checksum = false;  // reads every file
  bool remove = false;    // --delete
  bool one_file_system = false;
  bool dry_run = false;
  std::vector<std::string> exclude;
  // The directory that the files go into, as programs see it: it is left out of the sources.
  uint64_t target_device = 0;
  uint64_t target_inode = 0;
};

struct ImportTotals {
  std::atomic<uint64_t> files{0};            // all entries but directories
  std::atomic<uint64_t> files_unchanged{0};  // of these, not read: left alone, or shared
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> removed{0};
  std::atomic<uint64_t> errors{0};
};

struct ImportError {
  std::string path;
  std::string cause;
};

// A source directory, and the directory that its entries go into.
struct DirectoryNode {
  std::shared_ptr<DirectoryNode> parent;  // null for the directory of a source
  std::shared_ptr<const SourceDirectory> source;
  std::string path;      // for messages
  std::string relative;  // below the source, for patterns; empty for the source itself
  SourceAttributes attributes;
  std::vector<SourceXattr> xattrs;
  uint64_t root_file_system = 0;  // of the source
  InodeNumber target = 0;         // 0 in a dry run if it would be made
  InodeNumber reference = 0;      // 0: none
  bool existed = false;           // the target
  bool finish = false;            // it gets the attributes of the source at the end
  bool is_source = false;         // its entries are the contents of the user's argument
  // Its own entries and its subdirectories that are not imported yet. The thread that makes it 0
  // finishes the directory.
  std::atomic<uint64_t> pending{1};
  // An entry could not be read. Then nothing is removed from the target: the entry may have been
  // renamed, and the target may have its only copy.
  mutable std::atomic<bool> incomplete{false};
};
using DirectoryNodePtr = std::shared_ptr<DirectoryNode>;

// A subdirectory, or the one entry that the user has named.
struct ImportItem {
  DirectoryNodePtr parent;
  std::string name;
  bool is_source = false;
  DirectoryNodePtr opened = nullptr;  // instead of a name: a directory whose contents are imported
};

class ImportJob {
 public:
  using Report = std::function<void(const ImportError&)>;
  using Tell = std::function<void(const std::string& line)>;
  // `report` is called for each error, `tell` with a line for each change of a dry run; both by one
  // thread at a time.
  ImportJob(ImportOptions options, Report report, Tell tell)
      : options_(std::move(options)),
        exclude_(options_.exclude),
        report_(std::move(report)),
        tell_(std::move(tell)) {}

  const ImportOptions& options() const { return options_; }
  // Sets the identity of the target. Call it before other threads use the job.
  void SetTarget(uint64_t device, uint64_t inode) {
    options_.target_device = device;
    options_.target_inode = inode;
  }
  const ExcludePatterns& exclude() const { return exclude_; }
  // Whether a file may replace a directory with all that is in it. Patterns may protect names
  // there.
  bool replaces_directories() const { return options_.remove && exclude_.empty(); }
  ImportTotals& totals() { return totals_; }

  void AddError(std::string path, std::string cause);
  void TellChange(const std::string& line);

  // --- items that wait. The newest is taken first, so that few directories are open at a time.
  void Push(std::vector<ImportItem> items);
  // The next item; nullopt if none waits now.
  std::optional<ImportItem> TryPop();
  // Call it when the item that TryPop has returned is done.
  void ItemDone();
  // Waits until an item waits (true), or until none will come any more (false).
  bool WaitForMore();

  // --- the end
  // Makes all threads end soon. The first reason counts.
  void Stop(Status why);
  bool stopped() const { return stopped_; }
  Status outcome() const;

  // --- files with several names
  enum class Claim : uint8_t {
    kFirst,    // the caller puts the file, and then calls Resolve
    kPending,  // another thread puts it
    kKnown,    // `inode` is the file in the store
  };
  Claim ClaimLinked(const SourceAttributes& file, InodeNumber& inode);
  // As ClaimLinked, but only for the first name: false, without any effect, for other names.
  bool ClaimFirst(const SourceAttributes& file);
  // `inode` 0: the file could not be put; the next name tries again.
  void Resolve(const SourceAttributes& file, InodeNumber inode);
  // Waits until the file is no longer pending. The caller has no pending files of its own.
  void WaitForLinked(const SourceAttributes& file);

 private:
  using LinkKey = std::pair<uint64_t, uint64_t>;
  struct Linked {
    InodeNumber inode = 0;  // 0: pending
    uint32_t names_left = 0;
  };

  ImportOptions options_;
  const ExcludePatterns exclude_;
  const Report report_;
  const Tell tell_;
  ImportTotals totals_;
  std::atomic<bool> stopped_{false};

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<ImportItem> items_ SILTFS_GUARDED_BY(mutex_);
  uint64_t active_ SILTFS_GUARDED_BY(mutex_) = 0;  // taken and not done
  Status outcome_ SILTFS_GUARDED_BY(mutex_);
  std::map<LinkKey, Linked> linked_ SILTFS_GUARDED_BY(mutex_);
  Mutex report_mutex_;
};

}  // namespace siltfs
