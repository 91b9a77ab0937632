#include "index/flash/entry_table.h"

#include <algorithm>
#include <array>

namespace siltfs {
namespace {

// Buckets that an insertion looks at before the table refuses a hash.
constexpr size_t kMostVisited = 512;

uint32_t Scale(uint32_t bits, uint32_t range) {
  return static_cast<uint32_t>(uint64_t{bits} * range >> 32);
}

}  // namespace

std::array<uint32_t, 2> EntryTable::Shape::BucketsOf(uint64_t hash) const {
  // The top bits of a hash choose the partition, so the buckets depend on the lower ones.
  const auto first = static_cast<uint32_t>(hash);
  const auto second = static_cast<uint32_t>(hash * 0x9E3779B97F4A7C15 >> 32);
  return {Scale(first, buckets), Scale(second, buckets)};
}

uint64_t EntryTable::MemoryFor(const Shape& shape) {
  return shape.places() * RecordLayout::kEntrySize;
}

uint64_t EntryTable::memory_bytes() const {
  return hashes_.size() * RecordLayout::kEntrySize + overflow_.size() * sizeof(FlashEntry);
}

void EntryTable::Set(size_t place, const FlashEntry& entry) {
  hashes_[place] = entry.hash;
  entry.location.EncodeTo(locations_[place]);
}

std::optional<size_t> EntryTable::PlaceOf(uint64_t hash) const {
  if (hashes_.empty()) return std::nullopt;
  for (const uint32_t bucket : shape_.BucketsOf(hash)) {
    const size_t first = size_t{bucket} * shape_.ways;
    for (size_t place = first; place < first + shape_.ways; ++place) {
      if (hashes_[place] == hash) return place;
    }
  }
  return std::nullopt;
}

std::optional<FlashEntry> EntryTable::Find(uint64_t hash) const {
  if (const auto place = PlaceOf(hash)) return FlashEntry{hash, LocationAt(*place)};
  if (overflow_.empty()) return std::nullopt;
  const auto found = overflow_at_.find(hash);
  return found == overflow_at_.end() ? std::nullopt : std::optional(overflow_[found->second]);
}

std::optional<FlashEntry> EntryTable::At(uint32_t bucket, uint32_t way) const {
  const size_t place = size_t{bucket} * shape_.ways + way;
  if (hashes_.empty() || hashes_[place] == 0) return std::nullopt;
  return FlashEntry{hashes_[place], LocationAt(place)};
}

std::vector<FlashEntry> EntryTable::entries() const {
  std::vector<FlashEntry> entries;
  entries.reserve(size_);
  ForEach([&](const FlashEntry& entry) { entries.push_back(entry); });
  return entries;
}

std::optional<size_t> EntryTable::FreePlace(uint32_t bucket) const {
  const size_t first = size_t{bucket} * shape_.ways;
  for (size_t place = first; place < first + shape_.ways; ++place) {
    if (hashes_[place] == 0) return place;
  }
  return std::nullopt;
}

// Frees a place in one of the hash's buckets. Searches breadth-first for the shortest sequence of
// moves, and moves only if there is one.
std::optional<size_t> EntryTable::MakePlace(uint64_t hash) {
  struct Step {
    size_t place;   // whose entry moves on
    size_t parent;  // the step whose entry moves into this place; SIZE_MAX: none
  };
  std::vector<Step> steps;
  const auto add_bucket = [&](uint32_t bucket, size_t parent) {
    const size_t first = size_t{bucket} * shape_.ways;
    for (size_t place = first; place < first + shape_.ways; ++place) {
      steps.push_back({place, parent});
    }
  };
  for (const uint32_t bucket : shape_.BucketsOf(hash)) add_bucket(bucket, SIZE_MAX);
  for (size_t i = 0; i < steps.size() && i < kMostVisited; ++i) {
    const uint64_t resident = hashes_[steps[i].place];
    const auto buckets = shape_.BucketsOf(resident);
    const auto here = static_cast<uint32_t>(steps[i].place / shape_.ways);
    const uint32_t other = buckets[0] == here ? buckets[1] : buckets[0];
    if (other == here) continue;
    if (auto free = FreePlace(other)) {
      for (size_t step = i; step != SIZE_MAX; step = steps[step].parent) {
        hashes_[*free] = hashes_[steps[step].place];
        locations_[*free] = locations_[steps[step].place];
        free = steps[step].place;
      }
      hashes_[*free] = 0;
      return free;
    }
    add_bucket(other, i);
  }
  return std::nullopt;
}

bool EntryTable::Insert(const FlashEntry& entry) {
  if (const auto place = PlaceOf(entry.hash)) {
    Set(*place, entry);
    return true;
  }
  if (!overflow_.empty()) {
    const auto found = overflow_at_.find(entry.hash);
    if (found == overflow_at_.end()) return false;
    overflow_[found->second] = entry;
    return true;
  }
  if (hashes_.empty()) {
    hashes_.resize(shape_.places());
    locations_.resize(shape_.places());
  }
  const auto buckets = shape_.BucketsOf(entry.hash);
  auto place = FreePlace(buckets[0]);
  if (!place) place = FreePlace(buckets[1]);
  if (!place) place = MakePlace(entry.hash);
  if (!place) return false;
  Set(*place, entry);
  ++size_;
  return true;
}

void EntryTable::InsertAnyway(const FlashEntry& entry) {
  if (Insert(entry)) return;
  overflow_at_[entry.hash] = overflow_.size();
  overflow_.push_back(entry);
  ++size_;
}

void EntryTable::Clear() {
  PageVector<uint64_t>().swap(hashes_);
  PageVector<Packed>().swap(locations_);
  std::vector<FlashEntry>().swap(overflow_);
  overflow_at_.clear();
  size_ = 0;
}

}  // namespace siltfs
