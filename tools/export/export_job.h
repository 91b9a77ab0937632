// What one run of `siltfs export` shares: totals, errors, and the batch that is being written.
//
// Files are exported in batches. For each batch the collector finds out where all chunks lie, and
// sorts them by place. The writers then ask for the chunks in this order, and write each one into
// the files that have it. So each block of the log is decoded once for each batch. A batch has at
// most kBatchFiles files, kBatchBytes of content and kBatchChunks chunks; a larger file goes
// through several batches. While one batch is written, the next one is collected.
//
// Thread-safety: every call from any thread, unless stated otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fs/interface/content_source.h"
#include "store/base/status.h"
#include "store/base/thread_annotations.h"
#include "store/env/target_tree.h"

namespace siltfs {

inline constexpr size_t kBatchFiles = 2048;
inline constexpr uint64_t kBatchBytes = 256u << 20;
inline constexpr size_t kBatchChunks = 64u << 10;
// A writer takes so many bytes of chunks at a time, and the rest of the last block.
inline constexpr uint64_t kSliceBytes = 2u << 20;

struct ExportTotals {
  std::atomic<uint64_t> files{0};            // all entries but directories
  std::atomic<uint64_t> files_unchanged{0};  // of these, those that were there already
  std::atomic<uint64_t> bytes_read{0};       // of chunks, from the daemon
  std::atomic<uint64_t> bytes_new{0};        // written
  std::atomic<uint64_t> errors{0};
};

// A file that is being written. Its parts may be written by several threads.
struct ExportFile {
  std::shared_ptr<TargetFile> target;
  InodeNumber inode = 0;
  std::string path;  // for messages
  SourceAttributes attributes;
  std::vector<SourceXattr> xattrs;
  // For --verify: the chunks, in order. Guarded by the order of batches: only the collector changes
  // it, before the last batch of the file is posted.
  std::vector<std::pair<uint64_t, ChunkPlace>> chunks;
  // Parts that are not written yet, and one more until all parts are known. The thread that makes
  // it 0 finishes the file.
  std::atomic<uint64_t> pending{1};
  std::atomic<bool> failed{false};
};
using ExportFilePtr = std::shared_ptr<ExportFile>;

// A chunk of a batch, or a part of a file that is read by offset.
struct ExportPart {
  ExportFilePtr file;
  ContentPiece piece;
};
using ExportBatch = std::vector<ExportPart>;  // sorted by place

class ExportJob {
 public:
  using Report = std::function<void(const std::string& path, const std::string& cause)>;
  ExportJob(bool verify, Report report) : verify_(verify), report_(std::move(report)) {}

  bool verify() const { return verify_; }
  ExportTotals& totals() { return totals_; }
  void AddError(const std::string& path, const Status& status);
  // The error of an entry that is not exported. `inode` is noted, because it may have other names.
  void AddError(const std::string& path, const Status& status, InodeNumber inode);
  // The same for a file, once.
  void Fail(ExportFile& file, const Status& status);
  bool HasFailed(InodeNumber inode) const;

  // For the collector: waits until the writers have taken all of the batch before, and then gives
  // them this one.
  void Post(ExportBatch batch);
  // No batch will follow. Returns when all parts are taken.
  void EndBatches();
  // For the writers: the next parts, at least one; empty at the end. They stay valid until the
  // writer calls TakeSlice again.
  std::vector<ExportPart> TakeSlice();

  void Stop(Status why);
  bool stopped() const { return stopped_; }
  Status outcome() const;

 private:
  const bool verify_;
  const Report report_;
  ExportTotals totals_;
  std::atomic<bool> stopped_{false};
  mutable Mutex mutex_;
  CondVar changed_;
  ExportBatch batch_ SILTFS_GUARDED_BY(mutex_);
  size_t taken_ SILTFS_GUARDED_BY(mutex_) = 0;
  bool ended_ SILTFS_GUARDED_BY(mutex_) = false;
  Status outcome_ SILTFS_GUARDED_BY(mutex_);
  mutable Mutex report_mutex_;
  std::set<InodeNumber> failed_ SILTFS_GUARDED_BY(report_mutex_);
};

}  // namespace siltfs
