#include "index/silt/entry_merge.h"

#include <algorithm>

namespace siltfs {
namespace {

// A cursor of a run reads this many pages at once if the memory suffices.
constexpr uint32_t kMostCursorPages = 4;

}  // namespace

// Opens cursors for as many runs as the memory allows. If there are other stores to sort, cursors
// take half of the memory at most.
Status EntryMerge::OpenCursors() {
  has_cursor_.assign(version_.hashes.size(), false);
  const auto runs = static_cast<size_t>(
      std::ranges::count_if(version_.hashes, [](const auto& store) { return store->sorted(); }));
  if (runs == 0) return Status::Ok();
  const size_t memory_pages = options_.sort_memory_bytes / kPageSize;
  const bool all = runs == version_.hashes.size() && version_.logs.empty() && runs <= memory_pages;
  const size_t pages = all ? memory_pages : memory_pages / 2;
  const size_t each = std::clamp<size_t>(pages / runs, 1, kMostCursorPages);
  size_t left = std::min(runs, pages / each);
  runs_.Reserve(left, each);
  const size_t count = version_.hashes.size();
  for (size_t i = count; i-- > 0 && left > 0;) {
    if (!version_.hashes[i]->sorted()) continue;
    const size_t age = version_.logs.size() + count - 1 - i;
    SILTFS_RETURN_IF_ERROR(runs_.Add(version_.hashes[i]->file(), static_cast<uint32_t>(age)));
    has_cursor_[i] = true;
    --left;
  }
  return Status::Ok();
}

uint64_t EntryMerge::UnsortedEntries() const {
  uint64_t entries = 0;
  for (size_t i = 0; i < version_.hashes.size(); ++i) {
    if (!has_cursor_[i]) entries += version_.hashes[i]->entries();
  }
  for (const auto& log : version_.logs) entries += log->table().size();
  return entries;
}

Status EntryMerge::Run(const Visit& visit) {
  SILTFS_RETURN_IF_ERROR(OpenCursors());
  const uint64_t unsorted = UnsortedEntries();
  sort_.Plan(unsorted, options_.sort_memory_bytes -
                           std::min<uint64_t>(options_.sort_memory_bytes, runs_.memory_bytes()));
  SortedCursor sorted(version_.sorted ? &version_.sorted->file() : nullptr, options_.name_hash);
  SILTFS_RETURN_IF_ERROR(sorted.Next());
  for (uint64_t pass = 0; pass < sort_.passes(); ++pass) {
    sort_.Begin(pass);
    SILTFS_RETURN_IF_ERROR(Collect(pass == 0));
    dropped_ += sort_.Sort();
    SILTFS_RETURN_IF_ERROR(options_.layout.hashed() ? MergeRange(sort_.hashed(), sorted, visit)
                                                    : MergeRange(sort_.named(), sorted, visit));
  }
  damaged_pages_ += sorted.damaged_pages() + runs_.damaged_pages();
  return Status::Ok();
}

Status EntryMerge::Collect(bool count_damage) {
  uint32_t age = 0;
  for (auto log = version_.logs.rbegin(); log != version_.logs.rend(); ++log) {
    SILTFS_RETURN_IF_ERROR(CollectLog(**log, age++, count_damage));
  }
  for (size_t i = version_.hashes.size(); i-- > 0; ++age) {
    if (has_cursor_[i]) continue;
    SILTFS_RETURN_IF_ERROR(CollectConverted(*version_.hashes[i], age, count_damage));
  }
  return Status::Ok();
}

Status EntryMerge::CollectLog(const LogStore& store, uint32_t age, bool count_damage) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, store.ReadAll());
  if (count_damage) damaged_pages_ += contents.damaged_pages;
  const auto take = [&](uint32_t slot) {
    if (const auto entry = contents.Entry(slot)) sort_.Take(*entry, age);
  };
  store.table().ForEachPlace([&](size_t, uint16_t, uint32_t slot) { take(slot); });
  store.table().ForEachStashed([&](const CuckooPlace&, uint32_t slot) { take(slot); });
  return Status::Ok();
}

Status EntryMerge::CollectConverted(const ConvertedStore& store, uint32_t age, bool count_damage) {
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
      if (!IsHole(entry)) sort_.Take(entry, age);
    }
  }
}

// Takes the next entry of `items` or of a run, in the range of this pass, and drops the older
// entries of its key there.
template <typename Item>
Result<std::optional<EntryMerge::Newest>> EntryMerge::TakeNewest(std::span<const Item>& items) {
  const SortedCursor::Item* run = runs_.item();
  if (run != nullptr && run->key.hash > sort_.last_hash()) run = nullptr;
  if (items.empty() && run == nullptr) return std::optional<Newest>();
  std::optional<Newest> newest;
  const auto run_is_first = [&](const OrderKey& item) {
    return run->key < item || (run->key == item && runs_.age() < items.front().age);
  };
  if (run == nullptr || (!items.empty() && !run_is_first(items.front().key()))) {
    newest = Newest{.key = items.front().key(), .entry = sort_.EntryOf(items.front())};
    items = items.subspan(1);
  } else {
    newest = Newest{.key = run->key, .entry = run->entry};  // a run's slots have no rest
    SILTFS_RETURN_IF_ERROR(runs_.Next());
  }
  if (!items.empty() && items.front().key() == newest->key) {
    items = items.subspan(1);
    ++dropped_;
  }
  while (runs_.item() != nullptr && runs_.item()->key == newest->key) {
    SILTFS_RETURN_IF_ERROR(runs_.Next());
    ++dropped_;
  }
  return newest;
}

// Implements the rule of table 3 in the SILT paper: of two entries with equal keys, the one in the
// SortedStore is older and is dropped. If the newer entry is a tombstone, it is dropped, too.
template <typename Item>
Status EntryMerge::MergeRange(const std::vector<Item>& items, SortedCursor& sorted,
                              const Visit& visit) {
  std::span<const Item> left(items);
  for (;;) {
    SILTFS_ASSIGN_OR_RETURN(const auto newest, TakeNewest(left));
    if (!newest) break;
    while (sorted.item() && sorted.item()->key < newest->key) {
      SILTFS_RETURN_IF_ERROR(visit(sorted.item()->key, sorted.item()->entry));
      SILTFS_RETURN_IF_ERROR(sorted.Next());
    }
    if (sorted.item() && sorted.item()->key == newest->key) {
      ++dropped_;
      SILTFS_RETURN_IF_ERROR(sorted.Next());
    }
    if (IsTombstone(newest->entry)) {
      ++dropped_;
    } else {
      SILTFS_RETURN_IF_ERROR(visit(newest->key, newest->entry));
    }
  }
  while (sorted.item() && sorted.item()->key.hash <= sort_.last_hash()) {
    SILTFS_RETURN_IF_ERROR(visit(sorted.item()->key, sorted.item()->entry));
    SILTFS_RETURN_IF_ERROR(sorted.Next());
  }
  return Status::Ok();
}

}  // namespace siltfs
