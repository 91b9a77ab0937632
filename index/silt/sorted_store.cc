#include "index/silt/sorted_store.h"

#include <algorithm>

namespace siltfs {
namespace {

TrieOptions OptionsOf(unsigned partition_bits) {
  TrieOptions options;
  options.ordering = TrieOrdering::kWeak;
  options.block_entries = kSlotsPerPage;
  options.skip_bits = partition_bits;
  return options;
}

}  // namespace

Result<std::unique_ptr<SortedStoreWriter>> SortedStoreWriter::Create(
    Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
    uint64_t expected_entries, Throttle& throttle) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFileWriter::Create(env, directory, id, throttle));
  return std::unique_ptr<SortedStoreWriter>(new SortedStoreWriter(
      std::move(file), TrieBuilder(OptionsOf(partition_bits), expected_entries)));
}

Status SortedStoreWriter::Append(const OrderKey& key, const IndexEntry& entry) {
  const ChunkName trie_key = TrieKeyOf(key);
  if (file_->slots() > 0 && trie_key == last_) return Status::Ok();
  last_ = trie_key;
  trie_.Add(trie_key);
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
  return file_->Sync();
}

Result<std::shared_ptr<const SortedStore>> SortedStore::OpenWithoutTrie(
    Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id));
  const FrozenFileInfo& info = file->info();
  if (info.pages != (info.entries + kSlotsPerPage - 1) / kSlotsPerPage) {
    return Status(StatusCode::kCorruption, "has pages that its entries do not fill")
        .At(file->file().path());
  }
  return std::shared_ptr<const SortedStore>(new SortedStore(
      std::move(file), partition_bits, std::nullopt, std::make_shared<StoreCounters>()));
}

Result<std::shared_ptr<const SortedStore>> SortedStore::Open(Env& env, const std::string& directory,
                                                             const StoreFileId& id,
                                                             unsigned partition_bits) {
  SILTFS_ASSIGN_OR_RETURN(auto bare, OpenWithoutTrie(env, directory, id, partition_bits));
  return bare->WithTrie();
}

Result<TrieIndex> SortedStore::ReadTrie() const {
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file_->ReadPayload(file_->MostPayloadBytes()));
  auto trie = TrieIndex::Decode(payload);
  if (!trie.ok()) return std::move(trie).status().At(file_->file().path());
  if (trie->entries() != file_->info().entries || trie->options().skip_bits != partition_bits_ ||
      trie->options().block_entries != kSlotsPerPage || trie->blocks() != file_->info().pages) {
    return Status(StatusCode::kCorruption, "has a trie for other entries").At(file_->file().path());
  }
  return trie;
}

Result<std::shared_ptr<const SortedStore>> SortedStore::WithTrie() const {
  SILTFS_ASSIGN_OR_RETURN(TrieIndex trie, ReadTrie());
  return std::shared_ptr<const SortedStore>(
      new SortedStore(file_, partition_bits_, std::move(trie), counters_));
}

std::shared_ptr<const SortedStore> SortedStore::WithoutTrie() const {
  return std::shared_ptr<const SortedStore>(
      new SortedStore(file_, partition_bits_, std::nullopt, counters_));
}

IndexComponentStats SortedStore::Stats() const {
  IndexComponentStats stats = counters_->Stats(file_id());
  stats.entries = entries();
  stats.flash_bytes = file_->size();
  stats.flash_bytes_written = file_->size();
  stats.memory_bytes = trie_ ? trie_->memory_bytes() : 0;
  return stats;
}

// --- Searching without a trie ---

SortedSearch::SortedSearch(const SortedStore& store, uint64_t hash_secret, const OrderKey& key)
    : entries_(store.entries()),
      hash_secret_(hash_secret),
      key_(key),
      end_(store.file().info().pages) {
  const unsigned bits = store.partition_bits();
  const uint64_t width = bits == 0 ? UINT64_MAX : (uint64_t{1} << (64 - bits)) - 1;
  first_hash_ = key.hash & ~width;
  last_hash_ = first_hash_ + width;
}

std::optional<uint32_t> SortedSearch::NextPage() const {
  if (first_ >= end_) return std::nullopt;
  const uint32_t pages = end_ - first_;
  // The first steps guess. A step that fails to narrow things down is followed by one that halves.
  constexpr unsigned kGuesses = 4;
  if (steps_ >= kGuesses && steps_ % 2 == 0) return first_ + pages / 2;
  const double span = static_cast<double>(last_hash_ - first_hash_) + 1;
  const double share = static_cast<double>(key_.hash - first_hash_) / span;
  const auto guess = static_cast<uint32_t>(share * pages);
  return first_ + std::min(guess, pages - 1);
}

bool SortedSearch::Take(uint32_t page, ConstPageBytes bytes) {
  ++steps_;
  const uint64_t before = uint64_t{page} * kSlotsPerPage;
  const size_t slots = std::min<uint64_t>(kSlotsPerPage, entries_ - before);
  const auto key_at = [&](size_t i) {
    const ChunkName name = DecodeSlot(SlotOfPage(bytes, i)).name;
    return OrderKey{HashOf(name, hash_secret_), name};
  };
  const OrderKey first = key_at(0);
  if (key_ < first) {
    end_ = page;
    last_hash_ = std::clamp(first.hash, key_.hash, last_hash_);
    return false;
  }
  const OrderKey last = key_at(slots - 1);
  if (last < key_) {
    first_ = page + 1;
    first_hash_ = std::clamp(last.hash, first_hash_, key_.hash);
    return false;
  }
  first_ = end_;
  return true;
}

SortedCursor::SortedCursor(const SortedStore* store, uint64_t hash_secret)
    : hash_secret_(hash_secret) {
  if (store == nullptr) return;
  scan_.emplace(store->file());
  left_ = store->entries();
}

Status SortedCursor::Next() {
  item_.reset();
  while (left_ > 0) {
    if (slot_ == kSlotsPerPage) {
      SILTFS_ASSIGN_OR_RETURN(page_, scan_->Next());
      slot_ = 0;
      if (page_->damaged) {
        ++damaged_pages_;
        left_ -= std::min<uint64_t>(left_, kSlotsPerPage);
        slot_ = kSlotsPerPage;
        continue;
      }
    }
    const IndexEntry entry = DecodeSlot(SlotOfPage(page_->bytes, slot_++));
    --left_;
    item_ = Item{.key = {HashOf(entry.name, hash_secret_), entry.name}, .entry = entry};
    return Status::Ok();
  }
  return Status::Ok();
}

}  // namespace siltfs
