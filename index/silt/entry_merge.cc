#include "index/silt/entry_merge.h"

#include <algorithm>

namespace siltfs {

uint64_t EntryMerge::UnsortedEntries() const {
  uint64_t entries = version_.HashEntries();
  for (const auto& log : version_.logs) entries += log->table().size();
  return entries;
}

Status EntryMerge::Run(const Visit& visit) {
  const uint64_t unsorted = UnsortedEntries();
  // Hashes are uniform, so ranges of equal width hold about equal numbers of entries. These numbers
  // deviate from their mean by about its square root. A tenth of the memory is reserved for this
  // deviation.
  const size_t rest_size = options_.layout.rest_size();
  const bool hashed = options_.layout.hashed();
  const size_t item_size = hashed ? sizeof(HashedItem) : sizeof(NamedItem) + rest_size;
  const uint64_t room = std::max<uint64_t>(1, options_.sort_memory_bytes / item_size * 9 / 10);
  const uint64_t passes = std::max<uint64_t>(1, (unsorted + room - 1) / room);
  const uint64_t reserved = std::min(unsorted, room * 10 / 9);
  if (hashed) {
    hashed_.reserve(reserved);
  } else {
    named_.reserve(reserved);
    rests_.reserve(named_.capacity() * rest_size);
  }
  const uint64_t last_offset = UINT64_MAX >> options_.partition_bits;
  const uint64_t base = options_.partition_bits == 0
                            ? 0
                            : uint64_t{options_.partition} << (64 - options_.partition_bits);
  const uint64_t width = last_offset / passes + 1;

  SortedCursor sorted(version_.sorted.get(), options_.name_hash);
  SILTFS_RETURN_IF_ERROR(sorted.Next());
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const uint64_t first = width * pass;
    const uint64_t last = pass + 1 == passes ? last_offset : first + (width - 1);
    SILTFS_RETURN_IF_ERROR(Collect(base + first, base + last, pass == 0));
    if (hashed) {
      SortAndDropOld(hashed_);
      SILTFS_RETURN_IF_ERROR(MergeRange(hashed_, sorted, base + last, visit));
    } else {
      SortAndDropOld(named_);
      SILTFS_RETURN_IF_ERROR(MergeRange(named_, sorted, base + last, visit));
    }
  }
  damaged_pages_ += sorted.damaged_pages();
  return Status::Ok();
}

Status EntryMerge::Collect(uint64_t first_hash, uint64_t last_hash, bool count_damage) {
  hashed_.clear();
  named_.clear();
  rests_.clear();
  uint32_t age = 0;
  for (auto log = version_.logs.rbegin(); log != version_.logs.rend(); ++log) {
    SILTFS_RETURN_IF_ERROR(CollectLog(**log, age++, first_hash, last_hash, count_damage));
  }
  for (auto store = version_.hashes.rbegin(); store != version_.hashes.rend(); ++store) {
    SILTFS_RETURN_IF_ERROR(CollectHash(**store, age++, first_hash, last_hash, count_damage));
  }
  return Status::Ok();
}

void EntryMerge::Take(const SlotEntry& entry, uint32_t age, uint64_t first_hash,
                      uint64_t last_hash) {
  const OrderKey key = options_.name_hash.KeyOf(entry);
  if (key.hash < first_hash || key.hash > last_hash) return;
  if (options_.layout.hashed()) {
    hashed_.push_back({.hash = key.hash, .location = entry.location, .age = age});
    return;
  }
  named_.push_back({.order = key,
                    .location = entry.location,
                    .age = age,
                    .rest = static_cast<uint32_t>(named_.size())});
  if (entry.rest.empty()) return;
  rests_.insert(rests_.end(), entry.rest.begin(), entry.rest.end());
}

Status EntryMerge::CollectLog(const LogStore& store, uint32_t age, uint64_t first_hash,
                              uint64_t last_hash, bool count_damage) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, store.ReadAll());
  if (count_damage) damaged_pages_ += contents.damaged_pages;
  const auto take = [&](uint32_t slot) {
    if (const auto entry = contents.Entry(slot)) Take(*entry, age, first_hash, last_hash);
  };
  store.table().ForEachPlace([&](size_t, uint16_t, uint32_t slot) { take(slot); });
  store.table().ForEachStashed([&](const CuckooPlace&, uint32_t slot) { take(slot); });
  return Status::Ok();
}

Status EntryMerge::CollectHash(const HashStore& store, uint32_t age, uint64_t first_hash,
                               uint64_t last_hash, bool count_damage) {
  FrozenFileScan scan(store.file(), buffer_);
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const auto page, scan.Next());
    if (!page) return Status::Ok();
    if (page->damaged) {
      if (count_damage) ++damaged_pages_;
      continue;
    }
    for (size_t i = 0; i < options_.layout.slots_per_page(); ++i) {
      const SlotEntry entry = DecodeSlot(SlotOfPage(options_.layout, page->bytes, i));
      // A slot is empty if its place in the table was free, or if its entry was in a damaged page
      // of the converted log.
      if (!IsHole(entry)) Take(entry, age, first_hash, last_hash);
    }
  }
}

template <typename Item>
void EntryMerge::SortAndDropOld(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  const auto end = std::unique(items.begin(), items.end(),
                               [](const Item& a, const Item& b) { return a.key() == b.key(); });
  dropped_ += static_cast<uint64_t>(items.end() - end);
  items.erase(end, items.end());
}

SlotEntry EntryMerge::EntryOf(const HashedItem& item) const {
  SlotEntry entry;
  entry.hash = item.hash;
  entry.location = item.location;
  return entry;
}

SlotEntry EntryMerge::EntryOf(const NamedItem& item) const {
  const size_t rest_size = options_.layout.rest_size();
  return SlotEntry({.name = item.order.name, .location = item.location},
                   ByteView(rests_).subspan(item.rest * rest_size, rest_size));
}

// Implements the rule of table 3 in the SILT paper: of two entries with equal keys, the one in the
// SortedStore is older and is dropped. If the newer entry is a tombstone, it is dropped, too.
template <typename Item>
Status EntryMerge::MergeRange(const std::vector<Item>& items, SortedCursor& sorted,
                              uint64_t last_hash, const Visit& visit) {
  for (const Item& item : items) {
    const OrderKey key = item.key();
    while (sorted.item() && sorted.item()->key < key) {
      SILTFS_RETURN_IF_ERROR(visit(sorted.item()->key, sorted.item()->entry));
      SILTFS_RETURN_IF_ERROR(sorted.Next());
    }
    if (sorted.item() && sorted.item()->key == key) {
      ++dropped_;
      SILTFS_RETURN_IF_ERROR(sorted.Next());
    }
    const SlotEntry entry = EntryOf(item);
    if (IsTombstone(entry)) {
      ++dropped_;
    } else {
      SILTFS_RETURN_IF_ERROR(visit(key, entry));
    }
  }
  while (sorted.item() && sorted.item()->key.hash <= last_hash) {
    SILTFS_RETURN_IF_ERROR(visit(sorted.item()->key, sorted.item()->entry));
    SILTFS_RETURN_IF_ERROR(sorted.Next());
  }
  return Status::Ok();
}

}  // namespace siltfs
