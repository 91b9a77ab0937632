// The class behind SliceLsh::Open (slice_lsh.h), which has the description. slice_lsh.cc opens and
// closes it, slice_lsh_reads.cc finds candidates, and slice_lsh_writes.cc adds chunks.
//
// Only these files include this header.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "index/flash/page_files.h"
#include "index/flash/reader_pool.h"
#include "index/flash/state_map.h"
#include "index/slice_lsh/lsh_buffer.h"
#include "index/slice_lsh/lsh_table.h"
#include "index/slice_lsh/slice_lsh_state.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SliceLshImpl final : public SliceLsh {
 public:
  SliceLshImpl(Env& env, const SliceLshOptions& options);

  // Called once, before any other call.
  Status OpenAll();
  void NoteRenewed() { renewed_ = true; }

  const SliceLshShape& shape() const override { return header_.shape; }
  Status Find(std::span<const uint64_t> features,
              std::vector<std::vector<SliceLshCandidate>>& candidates) override;
  Status Add(std::span<const uint64_t> features, const SliceLshPlace& place) override;
  Status Flush() override;
  Status Verify(const std::function<void(const std::string&)>& report) override;
  SliceLshStats stats() const override;
  Status Close() override;

 private:
  class FindBatch;

  Status MakeNew() SILTFS_REQUIRES(write_mutex_);
  Status OpenExisting() SILTFS_REQUIRES(write_mutex_);
  Status MakeDirectories() SILTFS_REQUIRES(write_mutex_);
  void SetUp(std::vector<LshTables> tables) SILTFS_REQUIRES(write_mutex_);
  Status CountUses();
  std::vector<std::shared_ptr<const LshTables>> Tables() const;

  uint64_t KeyOf(unsigned table, uint64_t feature) const;
  // The log and stream of a table in files_.
  size_t LogOf(unsigned table) const {
    return header_.shape.directories == 0 ? 0 : 1 + table % header_.shape.directories;
  }

  // --- Writing ---

  Status CheckWritable() const SILTFS_REQUIRES(write_mutex_);
  Status MergeBuffer() SILTFS_REQUIRES(write_mutex_);
  Status MergeTable(unsigned table) SILTFS_REQUIRES(write_mutex_);
  Status FlushAll() SILTFS_REQUIRES(write_mutex_);
  Status Commit() SILTFS_REQUIRES(write_mutex_);
  StateMap::Changes ChangesSinceCommit() const SILTFS_REQUIRES(write_mutex_);
  Status StopUnlessNoSpace(Status status) SILTFS_REQUIRES(write_mutex_);

  Env& env_;
  const SliceLshOptions options_;
  PageFiles files_;
  mutable ReaderPool readers_;
  SliceLshHeader header_;  // does not change after Open
  bool renewed_ = false;   // does not change after Open

  mutable Mutex write_mutex_;
  StateMap state_ SILTFS_GUARDED_BY(write_mutex_);
  std::vector<uint8_t> changed_tables_ SILTFS_GUARDED_BY(write_mutex_);
  bool changed_ SILTFS_GUARDED_BY(write_mutex_) = false;
  uint64_t uncommitted_pages_ SILTFS_GUARDED_BY(write_mutex_) = 0;  // of replaced slicetables
  // Tables that have the entries of the buffer already. None after another chunk was added.
  unsigned merged_tables_ SILTFS_GUARDED_BY(write_mutex_) = 0;
  bool closed_ SILTFS_GUARDED_BY(write_mutex_) = false;
  Status stopped_ SILTFS_GUARDED_BY(write_mutex_);  // why writing has ended permanently

  // Calls that write have write_mutex_, too. So they may read without this one.
  mutable SharedMutex mutex_;
  std::unique_ptr<LshBuffer> buffer_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const LshTables>> tables_ SILTFS_GUARDED_BY(mutex_);

  std::atomic<uint64_t> lookups_{0};
  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> damaged_pages_{0};
  std::atomic<uint64_t> gone_entries_{0};
  std::atomic<uint64_t> repeated_entries_{0};
  std::atomic<uint64_t> overwritten_entries_{0};
  std::atomic<uint64_t> state_bytes_written_{0};
  std::atomic<uint64_t> state_memory_{0};
};

}  // namespace siltfs
