#include "index/silt/sorted_store.h"

#include <algorithm>
#include <cstring>

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

Result<std::shared_ptr<const SortedStore>> SortedStore::Open(Env& env, const std::string& directory,
                                                             const StoreFileId& id,
                                                             unsigned partition_bits) {
  SILTFS_ASSIGN_OR_RETURN(auto file, FrozenFile::Open(env, directory, id));
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file->ReadPayload(file->MostPayloadBytes()));
  auto trie = TrieIndex::Decode(payload);
  if (!trie.ok()) return std::move(trie).status().At(file->file().path());
  if (trie->entries() != file->info().entries || trie->options().skip_bits != partition_bits ||
      trie->options().block_entries != kSlotsPerPage || trie->blocks() != file->info().pages) {
    return Status(StatusCode::kCorruption, "has a trie for other entries").At(file->file().path());
  }
  return std::shared_ptr<const SortedStore>(new SortedStore(std::move(file), std::move(*trie)));
}

std::optional<IndexEntry> SortedStore::EntryInPage(const ChunkName& name, ConstPageBytes bytes) {
  for (size_t i = 0; i < kSlotsPerPage; ++i) {
    const auto slot = SlotOfPage(bytes, i);
    if (std::memcmp(slot.data(), name.bytes.data(), ChunkName::kSize) == 0) return DecodeSlot(slot);
  }
  return std::nullopt;
}

IndexComponentStats SortedStore::Stats() const {
  IndexComponentStats stats = counters_.Stats(file_id());
  stats.entries = entries();
  stats.flash_bytes = file_->size();
  stats.flash_bytes_written = file_->size();
  stats.memory_bytes = trie_.memory_bytes();
  return stats;
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
