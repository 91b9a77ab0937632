#include "index/silt/lookup.h"

#include <algorithm>

namespace siltfs {

void Lookup::Begin(const LogStore& active, const PartitionVersion* version) {
  active_ = &active;
  version_ = version;
  candidates_ = active.Find(hash_);
  Count(active.counters().probes);
  // Newest first, so those in the tail come before those on flash.
  for (; next_ < candidates_.size() && active.InTail(candidates_[next_]); ++next_) {
    slot_ = candidates_[next_];
    const IndexEntry entry = active.TailEntry(slot_);
    if (entry.name != *name_) continue;
    found_ = entry;
    return;
  }
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
        for (const auto& store : version_->hashes) store->filter().Prefetch(hash_);
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
  if (stage_ == Stage::kLogs) candidates_ = Log().Find(hash_);
  if (stage_ == Stage::kHashes) candidates_ = version_->hashes[older_]->filter().Find(hash_);
  if (stage_ == Stage::kSorted) candidates_.Add(version_->sorted->PageOf({hash_, *name_}));
  Count(Counters().probes);
}

StoreCounters& Lookup::Counters() const {
  if (stage_ == Stage::kHashes) return version_->hashes[older_]->counters();
  if (stage_ == Stage::kSorted) return version_->sorted->counters();
  return Log().counters();
}

std::optional<Lookup::PageRead> Lookup::NextRead() {
  if (found_ || !status_.ok()) return std::nullopt;
  while (next_ == candidates_.size()) {
    if (stage_ == Stage::kOver) return std::nullopt;
    NextStore();
  }
  slot_ = candidates_[next_];
  const uint64_t page = stage_ == Stage::kSorted ? slot_ : slot_ / kSlotsPerPage;
  const File* file = stage_ == Stage::kSorted   ? &version_->sorted->file().file()
                     : stage_ == Stage::kHashes ? &version_->hashes[older_]->file().file()
                                                : Log().file();
  return PageRead{.file = file, .offset = page * kPageSize};
}

std::optional<IndexEntry> Lookup::EntryInPage(ConstPageBytes bytes) {
  if (stage_ == Stage::kSorted) return SortedStore::EntryInPage(*name_, bytes);
  if (stage_ == Stage::kHashes) return HashStore::EntryInPage(slot_, bytes);
  auto entry = Log().EntryInPage(slot_, bytes);
  if (!entry) ++damaged_pages_;
  return entry;
}

void Lookup::Take(const Status& status, ConstPageBytes bytes) {
  ++next_;
  ++pages_read_;
  Count(Counters().flash_reads);
  if (!status.ok()) {
    // An older entry must not stand in for one that is there but can't be read.
    status_ = status;
    status_.IgnoreError("asked for when the lookup is over");
    return;
  }
  const auto entry = EntryInPage(bytes);
  if (entry && entry->name == *name_) {
    found_ = *entry;
  } else {
    Count(Counters().false_positives);
  }
}

void FinishLookup(Lookup& lookup) {
  alignas(kPageSize) std::array<uint8_t, kPageSize> page;
  while (const auto read = lookup.NextRead()) {
    auto got = read->file->Read(read->offset, page);
    // What is missing at the file's end reads as zeros, which no name has.
    if (got.ok()) std::fill(page.begin() + static_cast<ptrdiff_t>(*got), page.end(), 0);
    lookup.Take(got.ok() ? Status::Ok() : std::move(got).status(), page);
  }
}

void FinishLookups(std::span<Lookup> lookups, LookupReader& reader) {
  const size_t depth = std::min(reader.pages.size() / kPageSize, lookups.size());
  std::vector<ReadRequest> requests;
  std::vector<Lookup*> reading;  // whom each request serves
  size_t begun = 0;
  // Gives the request the next page that its lookup or one not begun yet must read.
  const auto aim = [&](ReadRequest& request, Lookup*& lookup) {
    for (;;) {
      if (lookup != nullptr) {
        if (const auto page = lookup->NextRead()) {
          request.file = page->file;
          request.offset = page->offset;
          return true;
        }
      }
      if (begun == lookups.size()) return false;
      lookup = &lookups[begun++];
    }
  };
  while (requests.size() < depth) {
    ReadRequest request;
    Lookup* lookup = nullptr;
    if (!aim(request, lookup)) break;
    request.out = reader.pages.view().subspan(requests.size() * kPageSize, kPageSize);
    requests.push_back(std::move(request));
    reading.push_back(lookup);
  }
  reader.queue->ReadAll(requests, [&](ReadRequest& request) {
    Lookup*& lookup = reading[static_cast<size_t>(&request - requests.data())];
    const MutableByteView out = request.out;
    // What is missing at the file's end reads as zeros, which no name has.
    std::fill(out.begin() + static_cast<ptrdiff_t>(request.bytes_read), out.end(), 0);
    lookup->Take(request.status, ConstPageBytes(out.data(), kPageSize));
    return aim(request, lookup);
  });
}

}  // namespace siltfs
