#include "index/flash/flash_index_impl.h"

#include <algorithm>
#include <functional>

namespace siltfs {
namespace {

constexpr uint64_t kLowMemory = 16U << 20;

}  // namespace

// Memory that is in use whatever the limit is.
uint64_t FlashIndex::FixedMemory() const {
  const uint64_t small =
      readers_.most_memory_bytes() + puts_.memory_bytes() + partitions()->memory_bytes();
  return std::max(small, kLeastFlashMemory) + state_memory_.load(std::memory_order_relaxed) +
         context_.table_bytes.load(std::memory_order_relaxed);
}

// Read queues are shorter if the limit is low.
unsigned FlashIndex::ReadDepth() const {
  const bool low = memory_limit_.load(std::memory_order_relaxed) < kLowMemory;
  return low ? std::max(1U, options_.read_depth / 4) : options_.read_depth;
}

// Moves buffers to flash while they take more memory than the limit allows.
Status FlashIndex::FitBuffers() {
  const uint64_t limit = memory_limit_.load(std::memory_order_relaxed);
  if (limit == kNoMemoryLimit) return Status::Ok();
  const uint64_t room = std::max(limit - std::min(limit, FixedMemory()), engine_->BufferBytes());
  while (context_.buffer_bytes.load(std::memory_order_relaxed) > room) {
    const auto partitions = this->partitions();
    FlashPartition* fullest = nullptr;
    for (const auto& partition : partitions->all()) {
      if (fullest == nullptr || partition->buffered_entries() > fullest->buffered_entries()) {
        fullest = partition.get();
      }
    }
    if (fullest->buffered_entries() == 0) return Status::Ok();
    SILTFS_RETURN_IF_ERROR(MoveBuffer(*fullest));
  }
  return Status::Ok();
}

// The memory that the limit leaves for filters.
uint64_t FlashIndex::FilterRoom() const {
  const uint64_t limit = memory_limit_.load(std::memory_order_relaxed);
  if (limit == kNoMemoryLimit) return kNoMemoryLimit;
  const uint64_t others = FixedMemory() + partitions()->all().size() * engine_->BufferBytes();
  return limit - std::min(limit, others);
}

// Whether the filters fit, with `more` bytes.
bool FlashIndex::FiltersFit(uint64_t more) const {
  const uint64_t room = FilterRoom();
  const uint64_t used = context_.filter_bytes.load(std::memory_order_relaxed);
  return used <= room && more <= room - used;
}

// The partitions, those with the most lookups first. The numbers are read once, because lookups go
// on.
std::vector<FlashIndex::Heat> FlashIndex::ByHeat(const PartitionMap& partitions) {
  std::vector<Heat> heats;
  for (const auto& partition : partitions.all()) {
    heats.push_back({partition->lookups.load(std::memory_order_relaxed), partition.get()});
  }
  std::ranges::stable_sort(heats, std::greater<>(), &Heat::lookups);
  return heats;
}

void FlashIndex::DropFiltersToFit() {
  if (FiltersFit(0)) return;
  const auto partitions = this->partitions();
  const std::vector<Heat> heats = ByHeat(*partitions);
  for (size_t i = heats.size(); i-- > 0 && !FiltersFit(0);) heats[i].partition->DropExtras();
  for (size_t i = heats.size(); i-- > 0 && !FiltersFit(0);) heats[i].partition->DropFilters();
}

void FlashIndex::LoadFittingFilters(FlashPartition& partition) {
  if (!partition.HasDroppedFilters() || !FiltersFit(partition.DroppedFilterBytes())) return;
  partition.LoadFilters().IgnoreError("lookups do without filters");
}

void FlashIndex::LoadFittingExtras(FlashPartition& partition) {
  if (partition.HasDroppedFilters() || !partition.HasDroppedExtras()) return;
  if (!FiltersFit(partition.DroppedExtraBytes())) return;
  partition.LoadExtras().IgnoreError("lookups do without them");
}

// Drops filters that do not fit, and loads filters that do.
void FlashIndex::FitFilters() {
  DropFiltersToFit();
  const auto partitions = this->partitions();
  const std::vector<Heat> heats = ByHeat(*partitions);
  size_t kept = heats.size();
  for (size_t i = 0; i < heats.size(); ++i) {
    const auto& [lookups, partition] = heats[i];
    if (!partition->HasDroppedFilters()) continue;
    // Filters are exchanged only for those of much colder partitions, so that similar partitions
    // do not take turns.
    const uint64_t bytes = partition->DroppedFilterBytes();
    while (!FiltersFit(bytes) && kept > i + 1 && heats[kept - 1].lookups < lookups / 2) {
      heats[--kept].partition->DropFilters();
    }
    if (!FiltersFit(bytes)) return;
    LoadFittingFilters(*partition);
  }
  for (const Heat& heat : heats) LoadFittingExtras(*heat.partition);
}

void FlashIndex::WriteDroppedFilters() {
  const auto partitions = this->partitions();
  for (const auto& partition : partitions->all()) {
    if (!partition->HasDroppedFilters()) continue;
    const auto written = partition->WriteDroppedFilters();
    if (!written.ok()) {
      written.status().IgnoreError("lookups read more pages; nothing has changed");
    } else if (*written) {
      partition->changed = true;
      changed_ = true;
    }
  }
}

Status FlashIndex::SetMemoryLimitImpl(uint64_t bytes) {
  memory_limit_ = bytes;
  readers_.Clear();
  FitFilters();
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(CheckWriting());
  WriteDroppedFilters();
  Status fitted = StopUnlessNoSpace(FitBuffers());
  if (!fitted.Is(StatusCode::kNoSpace)) return fitted;
  fitted.IgnoreError("the next Put tries again");
  return Status::Ok();
}

}  // namespace siltfs
