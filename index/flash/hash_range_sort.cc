#include "index/flash/hash_range_sort.h"

#include <algorithm>

namespace siltfs {
namespace {

template <typename Item>
uint64_t SortAndDropOld(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  const auto end = std::unique(items.begin(), items.end(),
                               [](const Item& a, const Item& b) { return a.key() == b.key(); });
  const auto dropped = static_cast<uint64_t>(items.end() - end);
  items.erase(end, items.end());
  return dropped;
}

}  // namespace

// Hashes are uniform, so ranges of equal width hold about equal numbers of entries. These numbers
// deviate from their mean by about its square root. A tenth of the memory is reserved for this
// deviation.
void HashRangeSort::Plan(uint64_t entries, uint64_t memory_bytes) {
  const size_t rest_size = options_.layout.rest_size();
  const bool hashed = options_.layout.hashed();
  const size_t item_size = hashed ? sizeof(HashedItem) : sizeof(NamedItem) + rest_size;
  const uint64_t room = std::max<uint64_t>(1, memory_bytes / item_size * 9 / 10);
  passes_ = std::max<uint64_t>(1, (entries + room - 1) / room);
  const uint64_t reserved = std::min(entries, room * 10 / 9);
  if (hashed) {
    hashed_.reserve(reserved);
  } else {
    named_.reserve(reserved);
    rests_.reserve(named_.capacity() * rest_size);
  }
}

void HashRangeSort::Begin(uint64_t pass) {
  hashed_.clear();
  named_.clear();
  rests_.clear();
  const uint64_t last_offset = UINT64_MAX >> options_.partition_bits;
  const uint64_t base = options_.partition_bits == 0
                            ? 0
                            : uint64_t{options_.partition} << (64 - options_.partition_bits);
  const uint64_t width = last_offset / passes_ + 1;
  const uint64_t first = width * pass;
  first_hash_ = base + first;
  last_hash_ = base + (pass + 1 == passes_ ? last_offset : first + (width - 1));
}

uint64_t HashRangeSort::Sort() {
  return options_.layout.hashed() ? SortAndDropOld(hashed_) : SortAndDropOld(named_);
}

}  // namespace siltfs
