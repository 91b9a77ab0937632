// The class behind SliceBloom::Open (slice_bloom.h), which has the description. slice_bloom.cc
// opens and closes it, slice_bloom_reads.cc finds names, and slice_bloom_writes.cc adds them.
//
// Only these files include this header.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "index/flash/page_files.h"
#include "index/flash/reader_pool.h"
#include "index/flash/state_map.h"
#include "index/slice_bloom/slice_bloom_state.h"
#include "store/base/thread_annotations.h"

namespace siltfs {

class SliceBloomImpl final : public SliceBloom {
 public:
  SliceBloomImpl(Env& env, const SliceBloomOptions& options);

  // Called once, before any other call.
  Status OpenAll();

  Status Find(std::span<const uint64_t> names,
              std::vector<std::vector<SegmentId>>& segments) override;
  bool Covers(SegmentId segment) const override;
  std::vector<SegmentId> Segments() const override;
  Status Add(SegmentId segment, std::span<const uint64_t> names) override;
  Status EndGroup() override;
  Status Remove(SegmentId segment) override;
  std::vector<SegmentId> Sparse() const override;
  Status Verify(const std::function<void(const std::string&)>& report) override;
  SliceBloomStats stats() const override;
  Status Close() override;

 private:
  class FindBatch;
  // Of segments in the present group.
  static constexpr uint32_t kPresent = UINT32_MAX;
  static constexpr size_t kFilterLog = 0;
  static constexpr size_t kSavedLog = 1;

  Status MakeNew() SILTFS_REQUIRES(write_mutex_);
  Status OpenExisting() SILTFS_REQUIRES(write_mutex_);
  Status CountUses(const std::optional<SavedGroup>& saved);
  Status LoadSaved(SavedGroup saved) SILTFS_REQUIRES(write_mutex_);

  uint64_t HashOf(uint64_t name) const;
  size_t PartitionOf(uint64_t hash) const;
  uint64_t FilterBytes() const { return filter_shape_.bytes(); }

  // --- Writing ---

  Status CheckWritable() const SILTFS_REQUIRES(write_mutex_);
  void EnterMember(SegmentId segment, uint32_t names) SILTFS_REQUIRES(write_mutex_, mutex_);
  void AddToPresent(uint64_t hash) SILTFS_REQUIRES(write_mutex_, mutex_);
  Status EndPresent() SILTFS_REQUIRES(write_mutex_);
  Status WriteColumn(size_t partition, uint64_t group) SILTFS_REQUIRES(write_mutex_);
  void Leave(SegmentId segment) SILTFS_REQUIRES(write_mutex_, mutex_);
  void ReleaseFiltersOf(uint64_t filter) SILTFS_REQUIRES(write_mutex_);
  Status SavePresent() SILTFS_REQUIRES(write_mutex_);
  void ReleaseSaved() SILTFS_REQUIRES(write_mutex_);
  Status Commit() SILTFS_REQUIRES(write_mutex_);
  StateMap::Changes ChangesSinceCommit() const SILTFS_REQUIRES(write_mutex_);
  Status StopUnlessNoSpace(Status status) SILTFS_REQUIRES(write_mutex_);

  Env& env_;
  const SliceBloomOptions options_;
  PageFiles files_;
  mutable ReaderPool readers_;
  BloomShape filter_shape_;

  mutable Mutex write_mutex_;
  StateMap state_ SILTFS_GUARDED_BY(write_mutex_);
  SliceBloomHeader header_;  // `groups` is guarded by mutex_; the rest does not change after Open
  std::vector<size_t> changed_partitions_ SILTFS_GUARDED_BY(write_mutex_);
  std::vector<uint64_t> changed_groups_ SILTFS_GUARDED_BY(write_mutex_);
  bool changed_ SILTFS_GUARDED_BY(write_mutex_) = false;
  // Partitions that have the column of the present group already. None after another bit was set.
  size_t written_columns_ SILTFS_GUARDED_BY(write_mutex_) = 0;
  uint64_t committed_groups_ SILTFS_GUARDED_BY(write_mutex_) = 0;
  std::optional<SavedGroup> saved_ SILTFS_GUARDED_BY(write_mutex_);
  // The present group has changed since it was saved or loaded.
  bool unsaved_ SILTFS_GUARDED_BY(write_mutex_) = false;
  bool closed_ SILTFS_GUARDED_BY(write_mutex_) = false;
  Status stopped_ SILTFS_GUARDED_BY(write_mutex_);  // why writing has ended permanently

  mutable SharedMutex mutex_;
  std::vector<BloomFilter> present_filters_ SILTFS_GUARDED_BY(mutex_);  // by partition
  SliceBloomGroup present_ SILTFS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const SliceFilters>> partitions_ SILTFS_GUARDED_BY(mutex_);
  std::vector<SliceBloomGroup> groups_ SILTFS_GUARDED_BY(mutex_);
  std::unordered_map<SegmentId, uint32_t> group_of_ SILTFS_GUARDED_BY(mutex_);
  uint64_t moves_ SILTFS_GUARDED_BY(mutex_) =
      0;  // of segments from ended groups to the present one

  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> damaged_pages_{0};
  std::atomic<uint64_t> state_bytes_written_{0};
  std::atomic<uint64_t> state_memory_{0};
};

}  // namespace siltfs
