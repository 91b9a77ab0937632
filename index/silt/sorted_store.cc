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

Result<std::unique_ptr<SortedStoreWriter>> SortedStoreWriter::Create(
    Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
    uint64_t expected_entries, Throttle& throttle, const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto file,
                          FrozenFileWriter::Create(env, directory, id, throttle, layout));
  SILTFS_ASSIGN_OR_RETURN(auto filter, RibbonFileWriter::Create(env, directory, id, partition_bits,
                                                                expected_entries, throttle));
  return std::unique_ptr<SortedStoreWriter>(new SortedStoreWriter(
      std::move(file), TrieBuilder(OptionsOf(partition_bits, layout), expected_entries),
      std::move(filter)));
}

Status SortedStoreWriter::Append(const OrderKey& key, const SlotEntry& entry) {
  const ChunkName trie_key = TrieKeyOf(key);
  if (file_->slots() > 0 && trie_key == last_) return Status::Ok();
  last_ = trie_key;
  trie_.Add(trie_key);
  SILTFS_RETURN_IF_ERROR(filter_->Add(key.hash));
  return file_->Append(entry);
}

Status SortedStoreWriter::Finish() {
  const uint64_t entries = file_->slots();
  Encoder trie;
  SILTFS_ASSIGN_OR_RETURN(const TrieIndex built, trie_.Finish());
  built.Encode(trie);
  FrozenFileInfo info;
  info.entries = entries;
  SILTFS_RETURN_IF_ERROR(file_->Finish(info, trie.view()));
  SILTFS_RETURN_IF_ERROR(file_->Sync());
  return filter_->Finish(file_->fingerprint());
}

Result<std::shared_ptr<const SortedStore>> SortedStore::OpenWithoutTrie(
    Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
    const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id, layout));
  const FrozenFileInfo& info = file->info();
  if (info.pages != layout.PagesFor(info.entries)) {
    return Status(StatusCode::kCorruption, "has a number of pages that does not match its entries")
        .At(file->file().path());
  }
  if (info.payload_bytes > file->MostPayloadBytes()) {
    return Status(StatusCode::kCorruption, "has a trie of an invalid size").At(file->file().path());
  }
  std::shared_ptr<SortedStore> store(new SortedStore(std::move(file), partition_bits));
  store->OpenFilter(env, directory);
  return std::shared_ptr<const SortedStore>(std::move(store));
}

Result<std::shared_ptr<const SortedStore>> SortedStore::Open(Env& env, const std::string& directory,
                                                             const StoreFileId& id,
                                                             unsigned partition_bits,
                                                             const SlotLayout& layout) {
  SILTFS_ASSIGN_OR_RETURN(auto bare, OpenWithoutTrie(env, directory, id, partition_bits, layout));
  return bare->WithTrie();
}

Result<TrieIndex> SortedStore::ReadTrie() const {
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file_->ReadPayload(file_->MostPayloadBytes()));
  auto trie = TrieIndex::Decode(payload);
  if (!trie.ok()) return std::move(trie).status().At(file_->file().path());
  if (trie->entries() != file_->info().entries || trie->options().skip_bits != partition_bits_ ||
      trie->options().block_entries != layout().slots_per_page() ||
      trie->blocks() != file_->info().pages) {
    return Status(StatusCode::kCorruption, "has a trie for other entries").At(file_->file().path());
  }
  return trie;
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

Result<std::shared_ptr<const SortedStore>> SortedStore::WithTrie() const {
  SILTFS_ASSIGN_OR_RETURN(TrieIndex trie, ReadTrie());
  return Changed([&](SortedStore& store) {
    store.trie_ = std::make_shared<const TrieIndex>(std::move(trie));
  });
}

std::shared_ptr<const SortedStore> SortedStore::WithoutTrie() const {
  return Changed([](SortedStore& store) { store.trie_.reset(); });
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
  stats.memory_bytes = (trie_ ? trie_->memory_bytes() : 0) + filter_bytes();
  return stats;
}

// --- Searching without a trie ---

SortedSearch::SortedSearch(const SortedStore& store, const NameHash& name_hash, const OrderKey& key)
    : entries_(store.entries()),
      layout_(store.layout()),
      name_hash_(name_hash),
      key_(key),
      end_(store.file().info().pages) {
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
  const uint64_t before = uint64_t{page} * layout_.slots_per_page();
  const size_t slots = std::min<uint64_t>(layout_.slots_per_page(), entries_ - before);
  if (FindInPage(layout_, key_, bytes)) return true;
  std::array<OrderKey, kMostSlotsPerPage> keys;
  for (size_t i = 0; i < slots; ++i) {
    keys[i] = name_hash_.KeyOf(DecodeSlot(SlotOfPage(layout_, bytes, i)));
  }
  const std::span<const OrderKey> all(keys.data(), slots);
  const auto out_of_order = [](const OrderKey& a, const OrderKey& b) { return !(a < b); };
  const bool plausible = std::adjacent_find(all.begin(), all.end(), out_of_order) == all.end() &&
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

SortedCursor::SortedCursor(const SortedStore* store, const NameHash& name_hash)
    : name_hash_(name_hash) {
  if (store == nullptr) return;
  scan_.emplace(store->file());
  left_ = store->entries();
  layout_ = store->layout();
  slot_ = layout_.slots_per_page();
}

Status SortedCursor::Next() {
  item_.reset();
  while (left_ > 0) {
    if (slot_ == layout_.slots_per_page()) {
      SILTFS_ASSIGN_OR_RETURN(page_, scan_->Next());
      slot_ = 0;
      if (page_->damaged) {
        ++damaged_pages_;
        left_ -= std::min<uint64_t>(left_, layout_.slots_per_page());
        slot_ = layout_.slots_per_page();
        continue;
      }
    }
    const SlotEntry entry = DecodeSlot(SlotOfPage(layout_, page_->bytes, slot_++));
    --left_;
    item_ = Item{.key = name_hash_.KeyOf(entry), .entry = entry};
    return Status::Ok();
  }
  return Status::Ok();
}

}  // namespace siltfs
