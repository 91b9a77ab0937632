#include "index/silt/sorted_store.h"

#include <algorithm>
#include <array>
#include <span>

namespace siltfs {
namespace {

TrieOptions OptionsOf(unsigned partition_bits, const SlotLayout& layout) {
  TrieOptions options;
  options.ordering = TrieOrdering::kWeak;
  options.block_entries = layout.slots_per_page();
  options.skip_bits = partition_bits;
  return options;
}

}  // namespace

// --- Writing ---

SortedStoreWriter::SortedStoreWriter(const Shape& shape, std::unique_ptr<FrozenFileWriter> file,
                                     std::unique_ptr<RibbonFileWriter> filter)
    : file_(std::move(file)), filter_(std::move(filter)) {
  if (shape.layout.hashed() && shape.page_index == PageIndexKind::kBounds) {
    binned_.emplace(*file_, HashBins{.skip_bits = shape.partition_bits,
                                     .count = std::max<uint64_t>(shape.expected_entries, 1)});
  } else {
    trie_.emplace(OptionsOf(shape.partition_bits, shape.layout), shape.expected_entries);
  }
}

Result<std::unique_ptr<SortedStoreWriter>> SortedStoreWriter::Create(Env& env,
                                                                     const std::string& directory,
                                                                     const StoreFileId& id,
                                                                     const Shape& shape,
                                                                     Throttle& throttle) {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          FrozenFileWriter::Create(env, directory, id, throttle, shape.layout));
  std::unique_ptr<RibbonFileWriter> filter;
  if (shape.filter) {
    SILTFS_ASSIGN_OR_RETURN(filter,
                            RibbonFileWriter::Create(env, directory, id, shape.partition_bits,
                                                     shape.expected_entries, throttle));
  }
  return std::unique_ptr<SortedStoreWriter>(
      new SortedStoreWriter(shape, std::move(file), std::move(filter)));
}

Status SortedStoreWriter::Append(const OrderKey& key, const SlotEntry& entry) {
  const ChunkName trie_key = TrieKeyOf(key);
  if (entries_ > 0 && trie_key == last_) return Status::Ok();
  last_ = trie_key;
  ++entries_;
  if (filter_) SILTFS_RETURN_IF_ERROR(filter_->Add(key.hash));
  if (trie_) {
    trie_->Add(trie_key);
    return file_->Append(entry);
  }
  return binned_->Append(key.hash, entry);
}

Result<PageIndex> SortedStoreWriter::FinishIndex() {
  if (trie_) {
    SILTFS_ASSIGN_OR_RETURN(TrieIndex built, trie_->Finish());
    return PageIndex(std::move(built));
  }
  SILTFS_ASSIGN_OR_RETURN(PageBounds bounds, binned_->Finish());
  return PageIndex(std::move(bounds));
}

Status SortedStoreWriter::Finish() {
  Encoder index;
  {
    SILTFS_ASSIGN_OR_RETURN(const PageIndex built, FinishIndex());
    built.Encode(index);
  }
  FrozenFileInfo info;
  info.entries = entries_;
  info.has_filter = filter_ != nullptr;
  info.page_index = trie_ ? PageIndexKind::kTrie : PageIndexKind::kBounds;
  SILTFS_RETURN_IF_ERROR(file_->Finish(info, index.view()));
  SILTFS_RETURN_IF_ERROR(file_->Sync());
  return filter_ ? filter_->Finish(file_->fingerprint()) : Status::Ok();
}

// --- Opening ---

Result<std::shared_ptr<const SortedStore>> SortedStore::OpenWithoutIndex(
    Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
    const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id, layout));
  const FrozenFileInfo& info = file->info();
  if (info.pages < layout.PagesFor(info.entries) || info.pages > info.entries) {
    return Status(StatusCode::kCorruption, "has a number of pages that does not match its entries")
        .At(file->file().path());
  }
  if (info.payload_bytes > file->MostPayloadBytes()) {
    return Status(StatusCode::kCorruption, "has a page index of an invalid size")
        .At(file->file().path());
  }
  std::shared_ptr<SortedStore> store(new SortedStore(std::move(file), partition_bits));
  if (info.has_filter) store->OpenFilter(env, directory);
  return std::shared_ptr<const SortedStore>(std::move(store));
}

Result<std::shared_ptr<const SortedStore>> SortedStore::Open(Env& env, const std::string& directory,
                                                             const StoreFileId& id,
                                                             unsigned partition_bits,
                                                             const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto bare, OpenWithoutIndex(env, directory, id, partition_bits, layout));
  return bare->WithIndex();
}

Result<PageIndex> SortedStore::ReadIndex() const {
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file_->ReadPayload(file_->MostPayloadBytes()));
  auto index = PageIndex::Decode(index_kind(),
                                 {.partition_bits = partition_bits_,
                                  .entries = entries(),
                                  .pages = file_->info().pages,
                                  .layout = layout()},
                                 payload);
  if (!index.ok()) return std::move(index).status().At(file_->file().path());
  return index;
}

void SortedStore::OpenFilter(Env& env, const std::string& directory) {
  const auto read = [&]() -> Result<std::shared_ptr<const RibbonFile>> {
    return RibbonFile::Open(env, directory, file_id(), partition_bits_, file_->fingerprint());
  };
  auto filter = read();
  if (filter.ok()) filter_file_ = std::move(*filter);
  filter.status().IgnoreError("a store without a filter only needs more reads");
  const bool gone = filter.status().Is(StatusCode::kNotFound);
  if (!gone && !filter.status().Is(StatusCode::kCorruption)) return;
  filter_damage_ = std::make_shared<const Status>(std::move(filter).status());
  filter_damage_->IgnoreError("Residency and Verify read it from filter_damage()");
}

template <typename Change>
std::shared_ptr<const SortedStore> SortedStore::Changed(const Change& change) const {
  std::shared_ptr<SortedStore> changed(new SortedStore(*this));
  change(*changed);
  return changed;
}

Result<std::shared_ptr<const SortedStore>> SortedStore::WithIndex() const {
  SILTFS_ASSIGN_OR_RETURN(PageIndex index, ReadIndex());
  return Changed([&](SortedStore& store) {
    store.index_ = std::make_shared<const PageIndex>(std::move(index));
  });
}

std::shared_ptr<const SortedStore> SortedStore::WithoutIndex() const {
  return Changed([](SortedStore& store) { store.index_.reset(); });
}

Result<std::shared_ptr<const SortedStore>> SortedStore::WithSlice() const {
  SILTFS_ASSIGN_OR_RETURN(auto slice, filter_file_->ReadSlice(filter_slices()));
  return Changed([&](SortedStore& store) {
    store.filter_ = filter_.value_or(RibbonFilter(filter_file_->shape())).With(std::move(slice));
  });
}

std::shared_ptr<const SortedStore> SortedStore::WithFirstSlices(unsigned slices) const {
  return Changed([&](SortedStore& store) {
    if (slices == 0) {
      store.filter_.reset();
    } else {
      store.filter_ = filter_->WithFirst(slices);
    }
  });
}

IndexComponentStats SortedStore::Stats() const {
  IndexComponentStats stats = counters_->Stats(file_id());
  stats.entries = entries();
  stats.flash_bytes = flash_bytes();
  stats.flash_bytes_written = flash_bytes();
  stats.filter_memory_bytes = filter_bytes();
  stats.memory_bytes = (index_ ? index_->memory_bytes() : 0) + stats.filter_memory_bytes;
  return stats;
}

// --- Searching without an index ---

SortedSearch::SortedSearch(const SortedStore& store, const NameHash& name_hash, const OrderKey& key)
    : layout_(store.layout()), name_hash_(name_hash), key_(key), end_(store.file().info().pages) {
  const unsigned bits = store.partition_bits();
  const uint64_t width = bits == 0 ? UINT64_MAX : (uint64_t{1} << (64 - bits)) - 1;
  first_hash_ = key.hash & ~width;
  last_hash_ = first_hash_ + width;
}

std::optional<uint32_t> SortedSearch::NextPage() const {
  if (first_ >= end_) return std::nullopt;
  if (next_) return next_;
  const uint32_t pages = end_ - first_;
  // The first steps interpolate. After them every other step bisects.
  constexpr unsigned kGuesses = 4;
  if (steps_ >= kGuesses && steps_ % 2 == 0) return first_ + pages / 2;
  const double span = static_cast<double>(last_hash_ - first_hash_) + 1;
  const double share = static_cast<double>(key_.hash - first_hash_) / span;
  const auto guess = static_cast<uint32_t>(share * pages);
  return first_ + std::min(guess, pages - 1);
}

bool SortedSearch::Take(uint32_t page, ConstPageBytes bytes) {
  ++steps_;
  if (FindInPage(layout_, key_, bytes)) return true;
  std::array<OrderKey, kMostSlotsPerPage> keys;
  size_t slots = 0;
  for (; slots < layout_.slots_per_page(); ++slots) {
    const SlotEntry entry = DecodeSlot(SlotOfPage(layout_, bytes, slots));
    if (IsHole(entry)) break;  // the rest of the page is empty
    keys[slots] = name_hash_.KeyOf(entry);
  }
  const std::span<const OrderKey> all(keys.data(), slots);
  const auto out_of_order = [](const OrderKey& a, const OrderKey& b) { return !(a < b); };
  const bool plausible = slots > 0 &&
                         std::adjacent_find(all.begin(), all.end(), out_of_order) == all.end() &&
                         all.front().hash >= first_hash_ && all.back().hash <= last_hash_;
  if (!plausible) {
    StepAside(page);
  } else if (slots < 4) {
    Narrow(page, key_ < all.front(), all.front().hash, all.back().hash);
  } else if (key_ < all[1]) {
    Narrow(page, true, all[1].hash, 0);
  } else if (all[slots - 2] < key_) {
    Narrow(page, false, 0, all[slots - 2].hash);
  } else {
    first_ = end_;  // absent: its place is between two keys of this page
  }
  return false;
}

// Narrows the search after `page`, which does not have the key: to the pages before it if `before`
// is set, otherwise to the pages after it. The hashes are the new limits of the search.
void SortedSearch::Narrow(uint32_t page, bool before, uint64_t first_hash, uint64_t last_hash) {
  if (before) {
    end_ = aside_.value_or(page);
    last_hash_ = std::clamp(first_hash, key_.hash, last_hash_);
  } else {
    first_ = page + 1;
    first_hash_ = std::clamp(last_hash, first_hash_, key_.hash);
  }
  aside_.reset();
  next_.reset();
}

// Called for a damaged page, which does not show where the key is: continues with the next page.
void SortedSearch::StepAside(uint32_t page) {
  if (!aside_) aside_ = page;
  next_ = page + 1;
  if (*next_ < end_) return;
  end_ = *aside_;
  aside_.reset();
  next_.reset();
}

SortedCursor::SortedCursor(const FrozenFile* file, const NameHash& name_hash, MutableByteView pages)
    : name_hash_(name_hash) {
  if (file == nullptr) return;
  if (pages.empty()) {
    scan_.emplace(*file);
  } else {
    scan_.emplace(*file, pages);
  }
  layout_ = file->layout();
  slot_ = layout_.slots_per_page();
}

Status SortedCursor::Next() {
  item_.reset();
  while (scan_) {
    if (slot_ == layout_.slots_per_page()) {
      SILTFS_ASSIGN_OR_RETURN(page_, scan_->Next());
      if (!page_) break;
      if (page_->damaged) {
        ++damaged_pages_;
        continue;
      }
      slot_ = 0;
    }
    const SlotEntry entry = DecodeSlot(SlotOfPage(layout_, page_->bytes, slot_++));
    if (IsHole(entry)) {
      slot_ = layout_.slots_per_page();  // the rest of the page is empty
      continue;
    }
    item_ = Item{.key = name_hash_.KeyOf(entry), .entry = entry};
    return Status::Ok();
  }
  scan_.reset();
  return Status::Ok();
}

}  // namespace siltfs
