#include "index/flash/flash_index_impl.h"

#include <algorithm>

#include "store/env/files.h"

namespace siltfs {

Status FlashIndex::Checkpoint() {
  const bool lost = damaged_pages() > 0;
  if (!changed_ && !replacing_log_ && puts_.next_number() == numbers_at_checkpoint_ &&
      complete_ == durable_ && lost == header_.entries_lost) {
    return Status::Ok();
  }
  SILTFS_RETURN_IF_ERROR(puts_.Seal());
  SILTFS_RETURN_IF_ERROR(ReplaceLog());
  SILTFS_RETURN_IF_ERROR(files_.Sync());
  FlashHeader header = header_;
  header.complete_sequence = std::max(header.complete_sequence, complete_);
  header.entries_lost = lost;
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
  numbers_at_checkpoint_ = puts_.next_number();
  durable_.store(header_.complete_sequence, std::memory_order_release);
  SILTFS_RETURN_IF_ERROR(files_.Committed());
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

// Replaces a log of puts that is much longer than the buffers need.
Status FlashIndex::ReplaceLog() {
  const auto partitions = this->partitions();
  if (!replacing_log_) {
    if (puts_.pages() < options_.least_log_pages) return Status::Ok();
    uint64_t buffered = 0;
    for (const auto& partition : partitions->all()) buffered += partition->buffered_entries();
    if (puts_.pages() * RecordLayout().per_page() / 2 < buffered) return Status::Ok();
  }
  // Until this has ended, a checkpoint would lose the entries that are in the old log only.
  replacing_log_ = true;
  changed_ = true;
  puts_.BeginNewLog();
  const uint64_t first = puts_.next_number();
  for (const auto& partition : partitions->all()) {
    for (const FlashEntry& entry : partition->TakeSnapshot().buffered) {
      SILTFS_RETURN_IF_ERROR(puts_.MakeRoom());
      puts_.Add(entry);
    }
    partition->log_from = first;
    partition->changed = true;
  }
  SILTFS_RETURN_IF_ERROR(puts_.Seal());
  replacing_log_ = false;
  return Status::Ok();
}

}  // namespace siltfs
