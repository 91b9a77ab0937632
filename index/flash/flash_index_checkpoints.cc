#include "index/flash/flash_index_impl.h"

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {

Status FlashIndex::Checkpoint() {
  const bool lost = damaged_pages() > 0;
  if (!changed_ && puts_.next_number() == numbers_at_checkpoint_ && complete_ == durable_ &&
      lost == header_.entries_lost) {
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(WithRoom([this] { return puts_.Seal(); }));
  SILTFS_RETURN_IF_ERROR(Commit(complete_));
  Status replaced = ReplaceLog();
  numbers_at_checkpoint_ = puts_.next_number();
  if (!replaced.Is(StatusCode::kNoSpace)) return replaced;
  replaced.IgnoreError("the checkpoint is made; the next one tries again");
  return Status::Ok();
}

// Makes the files durable, and everything that was put up to the sequence `complete`. The log of
// puts must have been written that far.
Status FlashIndex::Commit(uint64_t complete) {
  SILTFS_RETURN_IF_ERROR(files_.Sync());
  FlashHeader header = header_;
  header.complete_sequence = std::max(header.complete_sequence, complete);
  header.entries_lost = damaged_pages() > 0;
  std::swap(header_, header);
  Status committed = UnlessNoFiles(state_.Commit(ChangesOfCheckpoint()));
  state_bytes_written_ = state_.bytes_written();
  state_memory_ = state_.memory_bytes();
  if (!committed.ok()) {
    header.next_partition_id = header_.next_partition_id;
    header_ = std::move(header);
    return committed;
  }
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) partition->changed = false;
  replaced_partitions_.clear();
  changed_ = false;
  durable_.store(header_.complete_sequence, std::memory_order_release);
  // The manifest is durable. A caller must not take kNoSpace for a commit that was not made.
  Status removed = files_.Committed();
  if (!removed.Is(StatusCode::kNoSpace)) SILTFS_RETURN_IF_ERROR(std::move(removed));
  removed.IgnoreError("the next checkpoint removes the files");
  dead_at_checkpoint_ = files_.flash_bytes() / kPageSize - files_.live_pages();
  return Status::Ok();
}

StateMap::Changes FlashIndex::ChangesOfCheckpoint() const {
  StateMap::Changes changes;
  changes.emplace_back(kHeaderRecord, EncodeFlashHeader(header_));
  for (const uint64_t id : replaced_partitions_) {
    changes.emplace_back(PartitionRecordOf(id), std::nullopt);
  }
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) {
    if (!partition->changed) continue;
    changes.emplace_back(PartitionRecordOf(partition->id()), EncodePartitionState(*partition));
  }
  for (auto& [id, state] : files_.changes()) {
    changes.emplace_back(FileRecordOf(id), std::move(state));
  }
  return changes;
}

// Replaces a log of puts that is much longer than the buffers need. The new log is committed before
// the old one is released, so that a full disk can stop the replacement at any point.
Status FlashIndex::ReplaceLog() {
  if (!puts_.has_old_log()) {
    if (!WantsNewLog()) return Status::Ok();
    const PageFiles::Mark mark = files_.MarkEnds();
    const uint64_t first = puts_.next_number();
    puts_.BeginNewLog();
    Status logged = LogBuffers();
    if (!logged.ok()) {
      puts_.KeepOldLog();
      files_.CutBack(mark);
      return logged;
    }
    const auto partitions = this->partitions();
    for (const auto& partition : partitions->all()) {
      partition->log_from = first;
      partition->changed = true;
    }
    changed_ = true;
    // If this fails, the manifest may have the new log or not. The next checkpoint goes on here.
    SILTFS_RETURN_IF_ERROR(Commit(durable_.load(std::memory_order_relaxed)));
  }
  puts_.DropOldLog();
  changed_ = true;
  return Commit(durable_.load(std::memory_order_relaxed));
}

bool FlashIndex::WantsNewLog() const {
  if (puts_.pages() < options_.least_log_pages) return false;
  uint64_t buffered = 0;
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) buffered += partition->buffered_entries();
  return puts_.pages() * RecordLayout().per_page() / 2 >= buffered;
}

// Writes the entries of all buffers to the log of puts.
Status FlashIndex::LogBuffers() {
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) {
    for (const FlashEntry& entry : partition->TakeSnapshot().buffered) {
      SILTFS_RETURN_IF_ERROR(puts_.MakeRoom());
      puts_.Add(entry);
    }
  }
  return puts_.Seal();
}

}  // namespace siltfs
