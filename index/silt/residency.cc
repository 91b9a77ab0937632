#include "index/silt/residency.h"

#include <algorithm>

#include "index/silt/parallel_jobs.h"

namespace siltfs {
namespace {

// What a HashStore or SortedStore takes without its filter or trie.
constexpr uint64_t kStoreBytes = 1024;

// While they are read Drop waits, and whoever asks for the backlog. Each takes three times the
// memory of a filter meanwhile.
constexpr size_t kLoadedTogether = 64;
constexpr size_t kLoadingThreads = 8;

}  // namespace

Residency::Choice Residency::Choose() const {
  Choice choice;
  std::vector<Item> tries;
  for (uint32_t p = 0; p < stores_.partition_count(); ++p) {
    const auto version = stores_.partition(p).Get().version;
    for (auto store = version->hashes.rbegin(); store != version->hashes.rend(); ++store) {
      if (!unreadable_.contains((*store)->file_id())) {
        choice.items.push_back({.partition = p, .hash = *store, .sorted = nullptr});
      }
    }
    if (version->sorted && !unreadable_.contains(version->sorted->file_id())) {
      tries.push_back({.partition = p, .hash = nullptr, .sorted = version->sorted});
    }
  }
  choice.items.insert(choice.items.end(), tries.begin(), tries.end());
  const uint64_t limit = stores_.memory_plan().index_bytes;
  uint64_t bytes = choice.items.size() * kStoreBytes;
  for (const Item& item : choice.items) {
    bytes += item.bytes();
    if (limit != kNoMemoryLimit && bytes > limit) break;
    ++choice.fitting;
  }
  return choice;
}

void Residency::Drop() {
  MutexLock lock(mutex_);
  const Choice choice = Choose();
  for (size_t i = choice.fitting; i < choice.items.size(); ++i) {
    const Item& item = choice.items[i];
    if (!item.resident()) continue;
    if (item.hash) {
      stores_.Swap(item.partition, item.hash.get(), item.hash->WithoutFilter());
    } else {
      stores_.Swap(item.partition, item.sorted.get(), item.sorted->WithoutTrie());
    }
  }
}

bool Residency::LoadSome() {
  const bool threads = stores_.options().background;
  MutexLock lock(mutex_);
  const Choice choice = Choose();
  std::vector<const Item*> missing;
  for (size_t i = 0; i < choice.fitting && missing.size() < (threads ? kLoadedTogether : 1); ++i) {
    if (!choice.items[i].resident()) missing.push_back(&choice.items[i]);
  }
  std::vector<Status> outcomes(missing.size());
  ParallelJobs loading(missing.size(), threads ? kLoadingThreads : 0, [&](size_t i) {
    outcomes[i] = Load(*missing[i]);
    return Status::Ok();
  });
  loading.Finish().IgnoreError("each has its outcome");
  for (size_t i = 0; i < missing.size(); ++i) {
    if (outcomes[i].ok()) continue;
    if (outcomes[i].Is(StatusCode::kCorruption)) stores_.CountDamage(1);
    outcomes[i].IgnoreError("the store is searched without, and replaced by the next merge");
    unreadable_.insert(missing[i]->file_id());
  }
  return !missing.empty();
}

size_t Residency::Backlog() {
  MutexLock lock(mutex_);
  const Choice choice = Choose();
  return static_cast<size_t>(std::count_if(
      choice.items.begin(), choice.items.begin() + static_cast<ptrdiff_t>(choice.fitting),
      [](const Item& item) { return !item.resident(); }));
}

Status Residency::Load(const Item& item) {
  if (item.hash) {
    SILTFS_ASSIGN_OR_RETURN(auto store, item.hash->WithFilter());
    stores_.Swap(item.partition, item.hash.get(), std::move(store));
  } else {
    SILTFS_ASSIGN_OR_RETURN(auto store, item.sorted->WithTrie());
    stores_.Swap(item.partition, item.sorted.get(), std::move(store));
  }
  return Status::Ok();
}

}  // namespace siltfs
