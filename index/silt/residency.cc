#include "index/silt/residency.h"

#include <algorithm>

#include "index/flash/parallel_jobs.h"

namespace siltfs {
namespace {

// Items that are loaded together. While they are loaded, Drop and Backlog wait, and each item takes
// three times the memory of a filter.
constexpr size_t kLoadedTogether = 64;
constexpr size_t kLoadingThreads = 8;

// Number of HashStore filters that slices leave room for: about one batch of conversions.
constexpr uint64_t kFiltersToCome = 8;

// Read buffer of a slice, for each thread.
constexpr uint64_t kReadBytes = 72U << 10;

// Bytes that slices leave free.
uint64_t BytesToCome(const MemoryPlan& plan, bool threads) {
  const uint64_t filter = (kBucketWays << plan.bucket_bits) * sizeof(uint16_t);
  return kFiltersToCome * filter + (threads ? kLoadingThreads * kReadBytes : 0);
}

}  // namespace

// --- Items ---

const StoreFileId& Residency::Item::file_id() const {
  if (kind == Kind::kFilter) return hash->file_id();
  return kind == Kind::kIndex ? sorted->file_id() : sorted->filter_file()->id();
}

uint64_t Residency::Item::bytes() const {
  if (kind == Kind::kFilter) return hash->filter_bytes();
  return kind == Kind::kIndex ? sorted->index_bytes()
                              : sorted->filter_file()->shape().slice_bytes();
}

bool Residency::Item::resident() const {
  if (kind == Kind::kFilter) return hash->has_filter();
  return kind == Kind::kIndex ? sorted->index() != nullptr : sorted->filter_slices() > slice;
}

// Usually all filters and indexes are in memory and fit, and only slices are to be chosen. Then the
// choice needs no list of all stores.
Residency::Choice Residency::Choose() const {
  const StoreSet::Sizes sizes = stores_.GetSizes();
  const uint64_t bytes = sizes.wanted_bytes + sizes.stores * kStoreBytes;
  const uint64_t room = stores_.memory_plan().index_bytes;
  Choice choice;
  if (sizes.complete && (room == kNoMemoryLimit || bytes <= room)) {
    choice.settled_bytes = bytes;
  } else {
    AddFiltersAndIndexes(choice);
  }
  AddSlices(choice);
  CountFit(choice);
  return choice;
}

void Residency::AddFiltersAndIndexes(Choice& choice) const {
  std::vector<Item> bounds;
  std::vector<Item> tries;
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    const auto version = stores_.partition(p).Get().version;
    for (auto store = version->hashes.rbegin(); store != version->hashes.rend(); ++store) {
      if (!unreadable_.contains((*store)->file_id())) {
        choice.items.push_back({.kind = Item::Kind::kFilter, .partition = p, .hash = *store});
      }
    }
    if (version->sorted && !unreadable_.contains(version->sorted->file_id())) {
      auto& items = version->sorted->index_kind() == PageIndexKind::kBounds ? bounds : tries;
      items.push_back({.kind = Item::Kind::kIndex, .partition = p, .sorted = version->sorted});
    }
  }
  // Boundaries come first, because they take little and each saves a read of every lookup.
  choice.pinned = bounds.size();
  choice.items.insert(choice.items.begin(), bounds.begin(), bounds.end());
  choice.items.insert(choice.items.end(), tries.begin(), tries.end());
}

void Residency::AddSlices(Choice& choice) const {
  std::vector<Item> slices;
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    const auto sorted = stores_.partition(p).Get().version->sorted;
    if (sorted == nullptr || sorted->filter_file() == nullptr) continue;
    if (unreadable_.contains(sorted->filter_file()->id())) continue;
    slices.push_back({.kind = Item::Kind::kSlice, .partition = p, .sorted = sorted});
  }
  for (unsigned number = 0; number < kRibbonSlices; ++number) {
    for (Item& slice : slices) slice.slice = number;
    choice.items.insert(choice.items.end(), slices.begin(), slices.end());
  }
}

void Residency::CountFit(Choice& choice) const {
  const MemoryPlan plan = stores_.memory_plan();
  const bool limited = plan.index_bytes != kNoMemoryLimit;
  uint64_t bytes = static_cast<uint64_t>(std::count_if(
                       choice.items.begin(), choice.items.end(),
                       [](const Item& item) { return item.kind != Item::Kind::kSlice; })) *
                   kStoreBytes;
  bytes += choice.settled_bytes;
  for (const Item& item : choice.items) {
    const bool slice = item.kind == Item::Kind::kSlice;
    if (slice && !limited) return;
    bytes += item.bytes();
    const uint64_t to_come = slice ? BytesToCome(plan, stores_.options().background) : 0;
    const bool pinned = choice.fitting < choice.pinned;
    if (limited && !pinned && bytes + to_come > plan.index_bytes) return;
    ++choice.fitting;
  }
}

size_t Residency::Backlog() {
  MutexLock lock(mutex_);
  const Choice choice = Choose();
  return static_cast<size_t>(std::count_if(
      choice.items.begin(), choice.items.begin() + static_cast<ptrdiff_t>(choice.fitting),
      [](const Item& item) { return !item.resident(); }));
}

// Returns the current copy of the item's store, because another item of that store may have been
// loaded or dropped. Null if the store was replaced.
std::shared_ptr<const SortedStore> Residency::SortedNow(const Item& item) const {
  auto now = stores_.partition(item.partition).Get().version->sorted;
  return now && now->file_id() == item.sorted->file_id() ? now : nullptr;
}

// --- Dropping ---

void Residency::Drop() {
  MutexLock lock(mutex_);
  const Choice choice = Choose();
  for (size_t i = choice.fitting; i < choice.items.size(); ++i) DropItem(choice.items[i]);
}

void Residency::DropItem(const Item& item) {
  if (!item.resident()) return;
  if (item.kind == Item::Kind::kFilter) {
    stores_.Swap(item.partition, item.hash.get(), item.hash->WithoutFilter());
    return;
  }
  const auto now = SortedNow(item);
  if (now == nullptr) return;
  if (item.kind == Item::Kind::kIndex) {
    stores_.Swap(item.partition, now.get(), now->WithoutIndex());
  } else if (now->filter_slices() > item.slice) {
    stores_.Swap(item.partition, now.get(), now->WithFirstSlices(item.slice));
  }
}

// --- Loading ---

bool Residency::LoadSome() {
  const bool threads = stores_.options().background;
  MutexLock lock(mutex_);
  NoteDamagedFilters();
  const Choice choice = Choose();
  const auto missing = Missing(choice, threads ? kLoadedTogether : 1);
  std::vector<Status> outcomes(missing.size());
  ParallelJobs loading(missing.size(), threads ? kLoadingThreads : 0, [&](size_t i) {
    outcomes[i] = Load(*missing[i]);
    return Status::Ok();
  });
  loading.Finish().IgnoreError("each job has its own status");
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!outcomes[i].ok()) DoWithout(*missing[i], outcomes[i]);
  }
  return !missing.empty();
}

std::vector<const Residency::Item*> Residency::Missing(const Choice& choice, size_t most) const {
  std::vector<const Item*> missing;
  std::set<const SortedStore*> taken;
  for (size_t i = 0; i < choice.fitting && missing.size() < most; ++i) {
    const Item& item = choice.items[i];
    if (item.resident()) continue;
    // If two items of one store were loaded in parallel, each would install a copy of the store
    // that lacks the other item.
    if (item.sorted && !taken.insert(item.sorted.get()).second) continue;
    missing.push_back(&item);
  }
  return missing;
}

Status Residency::Load(const Item& item) {
  if (item.kind == Item::Kind::kFilter) {
    SILTFS_ASSIGN_OR_RETURN(auto store, item.hash->WithFilter());
    stores_.Swap(item.partition, item.hash.get(), std::move(store));
    return Status::Ok();
  }
  const auto now = SortedNow(item);
  if (now == nullptr) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(auto store,
                          item.kind == Item::Kind::kIndex ? now->WithIndex() : now->WithSlice());
  stores_.Swap(item.partition, now.get(), std::move(store));
  return Status::Ok();
}

// Leaves the item out until the index is opened again. If one slice of a filter is unreadable, the
// filter's other slices are dropped, too.
void Residency::DoWithout(const Item& item, const Status& why) {
  const bool slice = item.kind == Item::Kind::kSlice;
  if (why.Is(StatusCode::kCorruption))
    slice ? stores_.CountDamagedFilter() : stores_.CountDamage(1);
  why.IgnoreError("the store is searched without it, and replaced by the next merge");
  unreadable_.insert(item.file_id());
  if (!slice) return;
  const auto now = SortedNow(item);
  if (now != nullptr) stores_.Swap(item.partition, now.get(), now->WithFirstSlices(0));
}

// Counts filters with files that could not be opened.
void Residency::NoteDamagedFilters() {
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    const auto sorted = stores_.partition(p).Get().version->sorted;
    if (sorted == nullptr || sorted->filter_damage() == nullptr) continue;
    const StoreFileId filter{StoreKind::kFilter, p, sorted->file_id().id};
    if (unreadable_.insert(filter).second) stores_.CountDamagedFilter();
  }
}

}  // namespace siltfs
