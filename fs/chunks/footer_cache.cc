#include "fs/chunks/footer_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace siltfs {
namespace {

constexpr size_t kBytesPerWindow = FooterCache::kWindowChunks * sizeof(FooterChunk);

// Returns the number of parts that fit into `memory_bytes` next to a hash table of this many cells,
// and whose chunks fit into this table.
size_t WindowsFor(size_t cells, size_t cell_bytes, size_t memory_bytes) {
  const size_t table_bytes = cells * cell_bytes;
  if (table_bytes >= memory_bytes) return 0;
  return std::min(cells * 2 / 3 / FooterCache::kWindowChunks,
                  (memory_bytes - table_bytes) / kBytesPerWindow);
}

uint32_t FingerprintOf(uint64_t prefix) { return static_cast<uint32_t>(prefix); }

}  // namespace

// The number of cells is the power of two that allows the most parts.
FooterCache::FooterCache(size_t memory_bytes) {
  size_t cells = 2 * kWindowChunks;
  for (size_t more = cells; more * sizeof(Cell) < memory_bytes; more *= 2) {
    const size_t windows = WindowsFor(more, sizeof(Cell), memory_bytes);
    if (windows <= max_windows_) continue;
    max_windows_ = windows;
    cells = more;
  }
  max_windows_ = std::max<size_t>(max_windows_, 1);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(cells));
  cells_.resize(cells);
}

const FooterChunk& FooterCache::ChunkAt(uint32_t place) const {
  return slots_[place / kWindowChunks]->chunks[place % kWindowChunks];
}

void FooterCache::Enter(uint64_t prefix, uint32_t place) {
  size_t mask = cells_.size() - 1;
  size_t at = HomeOf(prefix);
  while (cells_[at].place != kEmpty) at = (at + 1) & mask;
  cells_[at] = {FingerprintOf(prefix), place};
}

void FooterCache::Leave(uint64_t prefix, uint32_t place) {
  size_t mask = cells_.size() - 1;
  size_t at = HomeOf(prefix);
  while (cells_[at].place != place) {
    if (cells_[at].place == kEmpty) return;
    at = (at + 1) & mask;
  }
  // Close the gap, because a search would end at it. Move each later cell back into the gap if the
  // probe sequence of this cell includes the gap.
  size_t gap = at;
  for (size_t next = (at + 1) & mask; cells_[next].place != kEmpty; next = (next + 1) & mask) {
    size_t home = HomeOf(ChunkAt(cells_[next].place).name_prefix);
    if (((next - home) & mask) >= ((next - gap) & mask)) {
      cells_[gap] = cells_[next];
      gap = next;
    }
  }
  cells_[gap] = Cell{};
}

void FooterCache::Evict(uint32_t slot) {
  const Window& window = *slots_[slot];
  for (uint32_t i = 0; i < window.chunks.size(); ++i) {
    if (window.chunks[i] != FooterChunk{})
      Leave(window.chunks[i].name_prefix, slot * kWindowChunks + i);
  }
  by_key_.erase(WindowKey(window.segment, window.start));
  recent_.erase(recent_of_[slot]);
  slots_[slot].reset();
  free_.push_back(slot);
}

void FooterCache::Touch(uint32_t slot) {
  recent_.splice(recent_.begin(), recent_, recent_of_[slot]);
}

std::optional<FooterCache::Hit> FooterCache::FindIf(const ChunkName& name, const ChunkTag* tag) {
  const uint64_t prefix = name.Prefix64();
  MutexLock lock(mutex_);
  size_t mask = cells_.size() - 1;
  for (size_t at = HomeOf(prefix); cells_[at].place != kEmpty; at = (at + 1) & mask) {
    if (cells_[at].fingerprint != FingerprintOf(prefix)) continue;
    const uint32_t place = cells_[at].place;
    const FooterChunk& chunk = ChunkAt(place);
    if (chunk.name_prefix != prefix || (tag != nullptr && chunk.tag != *tag)) continue;
    const uint32_t slot = place / kWindowChunks;
    Touch(slot);
    return Hit{slots_[slot]->segment, slots_[slot]->start + place % kWindowChunks, chunk.tag};
  }
  return std::nullopt;
}

std::optional<FooterCache::Hit> FooterCache::Find(const ChunkName& name, ChunkTag tag) {
  return FindIf(name, &tag);
}

std::optional<FooterCache::Hit> FooterCache::Find(const ChunkName& name) {
  return FindIf(name, nullptr);
}

std::optional<FooterChunk> FooterCache::At(SegmentId segment, uint32_t ordinal) {
  const uint32_t start = WindowStart(ordinal);
  MutexLock lock(mutex_);
  auto found = by_key_.find(WindowKey(segment, start));
  if (found == by_key_.end()) return std::nullopt;
  const Window& window = *slots_[found->second];
  if (ordinal - start >= window.chunks.size()) return std::nullopt;
  Touch(found->second);
  return window.chunks[ordinal - start];
}

void FooterCache::Insert(SegmentId segment, uint32_t window_start,
                         std::vector<FooterChunk> chunks) {
  if (chunks.empty()) return;
  if (chunks.size() > kWindowChunks) chunks.resize(kWindowChunks);
  MutexLock lock(mutex_);
  const uint64_t key = WindowKey(segment, window_start);
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    // The segment may be growing. Then another thread may have inserted a longer part after the
    // caller read this one.
    if (slots_[found->second]->chunks.size() >= chunks.size()) return;
    Evict(found->second);
  }
  if (by_key_.size() >= max_windows_) Evict(recent_.back());
  uint32_t slot;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
    recent_of_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  slots_[slot] = Window{segment, window_start, std::move(chunks)};
  by_key_[key] = slot;
  recent_.push_front(slot);
  recent_of_[slot] = recent_.begin();
  for (uint32_t i = 0; i < slots_[slot]->chunks.size(); ++i) {
    const FooterChunk& chunk = slots_[slot]->chunks[i];
    // Leave out lost entries. There may be many, and all would have the same probe sequence.
    if (chunk != FooterChunk{}) Enter(chunk.name_prefix, slot * kWindowChunks + i);
  }
}

void FooterCache::EraseSegment(SegmentId segment) {
  MutexLock lock(mutex_);
  std::vector<uint32_t> gone;
  for (uint32_t slot : recent_) {
    if (slots_[slot]->segment == segment) gone.push_back(slot);
  }
  for (uint32_t slot : gone) Evict(slot);
}

}  // namespace siltfs
