#include "index/silt/lookup.h"

#include <algorithm>

namespace siltfs {
namespace {

// The only page of a SortedStore that may have the key; nothing if that is unknown without a
// search.
std::optional<uint32_t> OnlyPage(const SortedStore& sorted, const OrderKey& key) {
  if (sorted.index() == nullptr) return std::nullopt;
  const PageBounds::Range pages = sorted.index()->PagesOf(key);
  return pages.first == pages.last ? std::optional(pages.first) : std::nullopt;
}

}  // namespace

void Lookup::Begin(const LogStore& active, const PartitionVersion* version) {
  active_ = &active;
  version_ = version;
  candidates_ = active.Find(hash());
  Count(active.counters().probes);
  // Candidates are newest first, so slots in the tail come before slots on flash.
  for (; next_ < candidates_.size() && active.InTail(candidates_[next_]); ++next_) {
    slot_ = candidates_[next_];
    const SlotEntry entry = active.TailEntry(slot_);
    if (!IsEntryOf(key_, active.layout(), entry)) continue;
    Find(entry);
    return;
  }
  if (version_ == nullptr) return;
  for (const auto& store : version_->hashes) {
    store->Prefetch(hash());
  }
  if (version_->sorted) version_->sorted->Prefetch(hash());
}

void Lookup::NextStore() {
  candidates_ = {};
  next_ = 0;
  if (version_ == nullptr) {
    stage_ = Stage::kOver;
    return;
  }
  for (;;) {
    if (older_ > 0) {
      --older_;
      break;
    }
    switch (stage_) {
      case Stage::kActive:
        stage_ = Stage::kLogs;
        older_ = version_->logs.size();
        break;
      case Stage::kLogs:
        stage_ = Stage::kHashes;
        older_ = version_->hashes.size();
        break;
      case Stage::kHashes:
        stage_ = Stage::kSorted;
        older_ = version_->SortedEntries() > 0 ? 1 : 0;
        break;
      case Stage::kSorted:
      case Stage::kOver:
        stage_ = Stage::kOver;
        return;
    }
  }
  FindCandidates();
  ++searched_;
}

void Lookup::FindCandidates() {
  by_page_ = false;
  if (stage_ == Stage::kLogs) {
    candidates_ = Log().Find(hash());
  } else if (stage_ == Stage::kHashes) {
    const auto places = version_->hashes[older_]->PlacesOf(hash());
    by_page_ = places.are_pages;
    candidates_ = places.candidates;
  } else {
    by_page_ = true;
    if (!version_->sorted->MayContain(hash())) return;
    if (const auto page = OnlyPage(*version_->sorted, key_)) {
      candidates_.Add(*page);
    } else {
      searches_ = true;
      search_ = SortedSearch(*version_->sorted, active_->name_hash(), key_);
      if (const auto first = search_.NextPage()) candidates_.Add(*first);
    }
  }
}

StoreCounters& Lookup::Counters() const {
  if (stage_ == Stage::kHashes) return version_->hashes[older_]->counters();
  if (stage_ == Stage::kSorted) return version_->sorted->counters();
  return Log().counters();
}

std::optional<PageRead> Lookup::NextRead() {
  if (found_ || !status_.ok()) return std::nullopt;
  while (next_ == candidates_.size()) {
    if (stage_ == Stage::kOver) return std::nullopt;
    NextStore();
  }
  slot_ = candidates_[next_];
  return CurrentPage();
}

// The page that holds slot_.
PageRead Lookup::CurrentPage() const {
  const uint64_t page = by_page_ ? slot_ : active_->layout().PageOf(slot_);
  const File* file = stage_ == Stage::kSorted   ? &version_->sorted->file().file()
                     : stage_ == Stage::kHashes ? &version_->hashes[older_]->file().file()
                                                : Log().file();
  return PageRead{.file = file, .offset = page * kPageSize};
}

std::vector<PageRead> Lookup::ReadsToCome(size_t most) const {
  std::vector<PageRead> reads;
  if (stage_ != Stage::kHashes) return reads;
  const auto add = [&](const FrozenFile& file, uint64_t page) {
    if (reads.size() < most) reads.push_back({.file = &file.file(), .offset = page * kPageSize});
  };
  const auto add_all = [&](const ConvertedStore& store, const ConvertedStore::Places& places,
                           size_t first) {
    for (size_t i = first; i < places.candidates.size(); ++i) {
      const uint32_t place = places.candidates[i];
      add(store.file(), places.are_pages ? place : store.layout().PageOf(place));
    }
  };
  add_all(*version_->hashes[older_], {.candidates = candidates_, .are_pages = by_page_}, next_ + 1);
  for (size_t i = older_; i-- > 0 && reads.size() < most;) {
    const ConvertedStore& store = *version_->hashes[i];
    add_all(store, store.PlacesOf(hash()), 0);
  }
  if (version_->SortedEntries() == 0) return reads;
  const SortedStore& sorted = *version_->sorted;
  if (!sorted.MayContain(hash())) return reads;
  if (const auto page = OnlyPage(sorted, key_)) {
    add(sorted.file(), *page);
  } else if (const auto first = SortedSearch(sorted, active_->name_hash(), key_).NextPage()) {
    add(sorted.file(), *first);
  }
  return reads;
}

void Lookup::Find(const SlotEntry& entry) {
  found_ = entry;
  found_rest_.assign(entry.rest.begin(), entry.rest.end());
}

void Lookup::NoteDamage() {
  if (damaged_pages_++ == 0) damaged_ = CurrentPage();
}

Status Lookup::Damage() const {
  return Status(StatusCode::kCorruption, "may have had the entry that was asked for")
      .At(damaged_.file->path(), damaged_.offset);
}

std::optional<SlotEntry> Lookup::EntryInPage(ConstPageBytes bytes) {
  if (by_page_) return FindInPage(active_->layout(), key_, bytes);
  if (stage_ == Stage::kHashes) {
    const SlotEntry entry = version_->hashes[older_]->EntryInPage(slot_, bytes);
    // The slot is empty, but the filter has a tag for it. So the entry was in a damaged page of the
    // converted log.
    if (IsHole(entry)) NoteDamage();
    return entry;
  }
  auto entry = Log().EntryInPage(slot_, bytes);
  if (!entry) NoteDamage();
  return entry;
}

const FrozenFile* Lookup::Frozen() const {
  if (stage_ == Stage::kSorted) return &version_->sorted->file();
  return stage_ == Stage::kHashes ? &version_->hashes[older_]->file() : nullptr;
}

// Continues the search of a SortedStore without its index. Returns true if the page has the key.
bool Lookup::FindsBySearch(ConstPageBytes bytes, bool damaged) {
  if (damaged) {
    search_.TakeDamaged(slot_);
  } else if (search_.Take(slot_, bytes)) {
    return true;
  }
  candidates_ = {};
  next_ = 0;
  if (const auto page = search_.NextPage()) candidates_.Add(*page);
  return false;
}

void Lookup::Take(const Status& status, ConstPageBytes bytes) {
  ++next_;
  ++pages_read_;
  Count(Counters().flash_reads);
  if (!status.ok()) {
    // End the lookup. An older entry must not be returned instead of an entry that cannot be read.
    status_ = status;
    status_.IgnoreError("the caller checks it when the lookup has ended");
    return;
  }
  const FrozenFile* const frozen = Frozen();
  const bool damaged =
      frozen != nullptr &&
      !frozen->MayBePage(by_page_ ? slot_ : active_->layout().PageOf(slot_), bytes);
  if (damaged) NoteDamage();
  if (searches_ && !FindsBySearch(bytes, damaged)) return;
  if (damaged) return;
  const auto entry = EntryInPage(bytes);
  if (entry && IsEntryOf(key_, active_->layout(), *entry)) {
    Find(*entry);
  } else {
    Count(Counters().false_positives);
  }
}

bool WantsReadAhead(const PartitionVersion& version) {
  return std::count_if(version.hashes.begin(), version.hashes.end(),
                       [](const auto& store) { return !store->has_filter(); }) > 1;
}

}  // namespace siltfs
