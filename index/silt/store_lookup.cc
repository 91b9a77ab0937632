#include "index/silt/store_lookup.h"

namespace siltfs {
namespace {

// Asks stores[unasked - 1], ... for every lookup that has no candidate yet. Store by store, so that
// the misses of the processor's cache overlap.
void ProbeStores(std::span<Lookup> lookups, std::span<size_t> unasked, const StoreList& stores,
                 size_t begin, size_t end) {
  for (size_t s = end; s-- > begin;) {
    auto wants = [&](size_t i) {
      return unasked[i] == s + 1 && !lookups[i].done() && !lookups[i].waiting();
    };
    for (size_t i = 0; i < lookups.size(); ++i) {
      if (wants(i)) lookups[i].Prefetch(*stores[s]);
    }
    for (size_t i = 0; i < lookups.size(); ++i) {
      if (!wants(i)) continue;
      lookups[i].Probe(*stores[s]);
      unasked[i] = s;
    }
  }
}

}  // namespace

void Lookup::Probe(const LogStore& store) {
  store_ = &store;
  candidates_ = store.Find(hash_);
  // Newest first, so those in the tail come before those on flash.
  for (next_ = 0; waiting() && store.InTail(candidates_[next_]); ++next_) {
    const uint32_t slot = candidates_[next_];
    const IndexEntry entry = store.TailEntry(slot);
    if (entry.name != *name_) continue;
    found_ = {.entry = entry, .slot = slot};
    done_ = true;
  }
}

void Lookup::Take(const SlotRead& read) {
  ++next_;
  // An older entry must not stand in for one that is there but can't be read.
  if (read.outcome == SlotRead::Outcome::kFailed) done_ = true;
  if (read.outcome != SlotRead::Outcome::kRead || read.entry.name != *name_) return;
  found_ = {.entry = read.entry, .slot = read.slot};
  done_ = true;
}

LookupsResult FinishLookups(std::span<Lookup> lookups, const StoreList& stores, size_t begin,
                            size_t end) {
  LookupsResult result;
  std::vector<size_t> unasked(lookups.size(), end);
  std::vector<SlotRead> reads;
  std::vector<Lookup*> readers;
  for (;;) {
    ProbeStores(lookups, unasked, stores, begin, end);
    reads.clear();
    readers.clear();
    for (Lookup& lookup : lookups) {
      if (!lookup.waiting()) continue;
      reads.push_back(lookup.NextRead());
      readers.push_back(&lookup);
    }
    if (reads.empty()) return result;

    SlotReadsResult read = ReadSlots(reads);
    result.pages_read += read.pages_read;
    if (!read.status.ok() && result.status.ok()) result.status = std::move(read.status);
    for (size_t i = 0; i < reads.size(); ++i) {
      readers[i]->Take(reads[i]);
      if (reads[i].outcome == SlotRead::Outcome::kDamaged) {
        result.damaged_pages.emplace_back(reads[i].store->id(), LogPageOfSlot(reads[i].slot));
      }
    }
  }
}

}  // namespace siltfs
