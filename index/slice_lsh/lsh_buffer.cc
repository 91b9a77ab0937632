#include "index/slice_lsh/lsh_buffer.h"

#include <algorithm>
#include <bit>

namespace siltfs {
namespace {

constexpr uint64_t kChunkBytes = sizeof(SliceLshPlace);
constexpr uint64_t kSlotBytes = sizeof(uint64_t) + 2 * sizeof(uint32_t);  // with a head

}  // namespace

LshBuffer::LshBuffer(unsigned tables, unsigned most_per_feature, uint64_t bytes)
    : tables_(tables),
      most_per_feature_(most_per_feature),
      capacity_(std::max<size_t>(bytes / (kChunkBytes + tables * kSlotBytes), 1)),
      head_count_(std::bit_floor(capacity_ * tables)),
      entries_(tables) {}

uint64_t LshBuffer::memory_bytes() const {
  return places_.capacity() * sizeof(SliceLshPlace) + keys_.capacity() * sizeof(uint64_t) +
         (nexts_.capacity() + heads_.capacity()) * sizeof(uint32_t);
}

bool LshBuffer::IsThere(std::span<const uint64_t> keys, const SliceLshPlace& place) const {
  for (unsigned table = 0; table < tables_; ++table) {
    bool found = false;
    Find(table, keys[table], [&](const SliceLshPlace& other) { found = found || other == place; });
    if (!found) return false;
  }
  return true;
}

unsigned LshBuffer::Add(std::span<const uint64_t> keys, const SliceLshPlace& place) {
  if (IsThere(keys, place)) return 0;
  if (heads_.empty()) {
    // Exactly the capacity, because vectors that grow by themselves may be larger.
    places_.reserve(capacity_);
    keys_.reserve(capacity_ * tables_);
    nexts_.reserve(capacity_ * tables_);
    heads_.assign(head_count_, kNone);
  }
  unsigned replaced = 0;
  places_.push_back(place);
  for (unsigned table = 0; table < tables_; ++table) {
    const auto slot = static_cast<uint32_t>(keys_.size());
    uint32_t& head = heads_[HeadOf(table, keys[table])];
    keys_.push_back(keys[table]);
    nexts_.push_back(head);
    head = slot;
    ++entries_[table];
    unsigned count = 0;
    for (uint32_t before = slot, at = slot; at != kNone; before = at, at = nexts_[at]) {
      if (!Has(at, table, keys[table]) || ++count <= most_per_feature_) continue;
      nexts_[before] = nexts_[at];
      keys_[at] = kReplaced;
      --entries_[table];
      ++replaced;
      break;
    }
  }
  return replaced;
}

std::vector<LshEntry> LshBuffer::Sorted(unsigned table) const {
  std::vector<LshEntry> entries;
  entries.reserve(entries_[table]);
  for (size_t chunk = places_.size(); chunk-- > 0;) {
    const uint64_t key = keys_[chunk * tables_ + table];
    if (key != kReplaced) entries.push_back({.key = key, .place = places_[chunk]});
  }
  std::ranges::stable_sort(entries, {}, &LshEntry::key);
  return entries;
}

void LshBuffer::Clear() {
  places_.clear();
  keys_.clear();
  nexts_.clear();
  std::ranges::fill(heads_, kNone);
  std::ranges::fill(entries_, 0);
}

}  // namespace siltfs
