// The class behind OpenFlashIndex (flash_index.h), which has the description. Its functions are in
// several files: flash_index.cc opens the index, flash_index_reads.cc looks up, lists and verifies,
// flash_index_writes.cc puts, flash_index_checkpoints.cc makes everything durable, and
// flash_index_memory.cc keeps the memory below its limit.
//
// Only these files include this header.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/flash/flash_index.h"
#include "index/flash/flash_lookup.h"
#include "index/flash/flash_state.h"
#include "index/flash/partition_map.h"
#include "index/flash/put_log.h"
#include "index/flash/reader_pool.h"
#include "index/flash/slot.h"
#include "index/flash/state_map.h"

namespace siltfs {

class FlashIndex final : public ChunkIndex {
 public:
  FlashIndex(Env& env, const FlashIndexOptions& options, std::unique_ptr<FlashEngine> engine);

  // Called once, before any other call.
  Status Open();

 private:
  class GetBatch;

  // --- Opening ---

  Status MakeNew();
  Status OpenExisting();
  Status MakeDeviceDirectories();
  Status ReplayPuts();
  Status CountUses();

  // --- ChunkIndex ---

  Status GetImpl(std::span<const ChunkName> names,
                 std::span<std::optional<Location>> results) override;
  Status PutImpl(std::span<const IndexEntry> entries, uint64_t complete) override;
  Status DeleteImpl(const ChunkName& name) override;
  Status FlushImpl(uint64_t complete) override;
  Status SetMemoryLimitImpl(uint64_t bytes) override;
  uint64_t DurableSequenceImpl() const override { return durable_.load(std::memory_order_acquire); }
  Status ForEachImpl(const Visit& visit) override;
  uint64_t OrderOfImpl(const ChunkName& name) const override { return name_hash_.Of(name); }
  void SetGoneImpl(std::function<bool(SegmentId)> gone) override {
    MutexLock lock(gone_mutex_);
    gone_ = std::move(gone);
  }
  Result<bool> DropGoneImpl(size_t part, uint64_t complete) override;
  using Report = std::function<void(const IndexFinding&)>;
  Status VerifyImpl(const Report& report) override;
  Status VerifyPartition(const FlashPartition& partition, const Report& report) const;
  IndexStats StatsImpl() const override;
  Status CloseImpl(uint64_t complete) override;

  // --- Writing: calls are serialised ---

  Status Enter(const FlashEntry& entry);
  // Repeats a write that finds a full disk, after a checkpoint has removed files without pages in
  // use.
  Status WithRoom(const std::function<Status()>& write);
  Status MoveBuffer(FlashPartition& partition);
  Status Rewrite(FlashPartition& partition, const std::function<bool(SegmentId)>& gone);
  Status Divide(const HashPrefix& prefix, std::span<const FlashEntry> entries,
                PartitionMap::Partitions& made);
  Status CleanSome();
  Status CleanFile(FlashPartition& partition, uint64_t file);
  Status FitBuffers();
  struct Heat {
    uint64_t lookups = 0;
    FlashPartition* partition = nullptr;
  };
  static std::vector<Heat> ByHeat(const PartitionMap& partitions);
  void DropFiltersToFit();
  void LoadFittingFilters(FlashPartition& partition);
  void LoadFittingExtras(FlashPartition& partition);
  bool FiltersFit(uint64_t more) const;
  void FitFilters();
  void WriteDroppedFilters();
  uint64_t FilterRoom() const;
  Status Checkpoint();
  Status Commit(uint64_t complete);
  Status ReplaceLog();
  bool WantsNewLog() const;
  Status LogBuffers();
  StateMap::Changes ChangesOfCheckpoint() const;
  Status CheckWriting() const { return stopped_; }
  Status StopUnlessNoSpace(Status status);
  void RecordLostEntries();

  void CountDamage(uint64_t pages) const;
  uint64_t damaged_pages() const {
    return damaged_pages_.load(std::memory_order_relaxed) +
           context_.damaged_pages.load(std::memory_order_relaxed);
  }
  std::shared_ptr<const PartitionMap> partitions() const {
    ReaderLock lock(partitions_mutex_);
    return partitions_;
  }
  void Install(std::shared_ptr<const PartitionMap> partitions) {
    WriterLock lock(partitions_mutex_);
    partitions_.swap(partitions);
  }
  std::function<bool(SegmentId)> gone() const {
    MutexLock lock(gone_mutex_);
    return gone_;
  }
  uint64_t FixedMemory() const;
  unsigned ReadDepth() const;

  Env& env_;
  const FlashIndexOptions options_;
  const std::unique_ptr<FlashEngine> engine_;
  const std::vector<PageLogSpec> logs_;
  PageFiles files_;
  mutable FlashContext context_;
  NameHash name_hash_;

  mutable SharedMutex partitions_mutex_;
  std::shared_ptr<const PartitionMap> partitions_ SILTFS_GUARDED_BY(partitions_mutex_);
  mutable Mutex gone_mutex_;
  std::function<bool(SegmentId)> gone_ SILTFS_GUARDED_BY(gone_mutex_);  // may be empty

  // Used only by the writing calls, which are serialised.
  StateMap state_;
  PutLog puts_;
  FlashHeader header_;
  uint64_t complete_ = 0;                      // sequence up to which everything has been put
  uint64_t numbers_at_checkpoint_ = 1;         // puts_.next_number() at the last checkpoint
  bool changed_ = false;                       // a partition was changed since the last checkpoint
  std::vector<uint64_t> replaced_partitions_;  // since the last checkpoint
  uint64_t dead_at_checkpoint_ = 0;
  uint64_t drop_cursor_ = 0;  // the hash at which DropGone continues
  Status stopped_;            // why writing has ended permanently

  mutable ReaderPool readers_;
  std::atomic<uint64_t> memory_limit_;
  std::atomic<uint64_t> durable_{0};
  std::atomic<uint64_t> flash_reads_{0};
  std::atomic<uint64_t> put_flash_reads_{0};
  mutable std::atomic<uint64_t> damaged_pages_{0};
  std::atomic<uint64_t> state_bytes_written_{0};
  std::atomic<uint64_t> state_memory_{0};
  std::atomic<uint64_t> merges_{0};
  std::atomic<uint64_t> conversions_{0};
};

}  // namespace siltfs
