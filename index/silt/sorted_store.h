// A SortedStore (SILT, section 3.3): a partition's entries sorted, and an entropy-coded trie that
// says in which page of 4 KiB a key lies ("sparse indexing": the slots of a page share a leaf), in
// about 0.3 bits a key where there are 128. Immutable; a merge writes its successor.
//
// Entries are sorted by the hash of their name (OrderKey), so one page is read whatever names
// there are. The trie can be left out of memory; a key is then searched for (SortedSearch). A trie
// leads to a page whether the key is there or not; where there is memory for it, a filter beside it
// says that it is not (ribbon_filter.h).
//
// Thread-safety: const, so any. Memory: the trie, and as many of the filter's slices as were read.
// Durability: frozen_file.h. Format: docs/format.md, "SILT SortedStore".
#pragma once

#include <memory>
#include <optional>

#include "index/silt/frozen_file.h"
#include "index/silt/ribbon_file.h"
#include "index/silt/store_counters.h"
#include "index/silt/trie_builder.h"
#include "index/silt/trie_index.h"

namespace siltfs {

class SortedStoreWriter {
 public:
  // `expected_entries` shapes trie and filter; more or fewer may come.
  static Result<std::unique_ptr<SortedStoreWriter>> Create(
      Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
      uint64_t expected_entries, Throttle& throttle, const SlotLayout& layout = kChunkSlots);
  // In rising order; no tombstones. Of several entries with one TrieKeyOf the first stays.
  Status Append(const OrderKey& key, const SlotEntry& entry);
  // Ends the files and syncs them.
  Status Finish();
  uint64_t entries() const { return file_->slots(); }
  uint64_t bytes_written() const { return file_->bytes_written(); }

 private:
  SortedStoreWriter(std::unique_ptr<FrozenFileWriter> file, TrieBuilder trie,
                    std::unique_ptr<RibbonFileWriter> filter)
      : file_(std::move(file)), trie_(std::move(trie)), filter_(std::move(filter)) {}

  std::unique_ptr<FrozenFileWriter> file_;
  TrieBuilder trie_;
  std::unique_ptr<RibbonFileWriter> filter_;
  ChunkName last_;  // as the trie has it
};

class SortedStore {
 public:
  // With its trie, which is read from flash, or without. kCorruption, kNotFound, kIoError. Without
  // the filter's slices, and whatever has become of its file.
  static Result<std::shared_ptr<const SortedStore>> Open(Env& env, const std::string& directory,
                                                         const StoreFileId& id,
                                                         unsigned partition_bits,
                                                         const SlotLayout& layout = kChunkSlots);
  static Result<std::shared_ptr<const SortedStore>> OpenWithoutTrie(
      Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
      const SlotLayout& layout = kChunkSlots);

  // The same store, with its trie read from flash, or without.
  Result<std::shared_ptr<const SortedStore>> WithTrie() const;
  std::shared_ptr<const SortedStore> WithoutTrie() const;
  Result<TrieIndex> ReadTrie() const;

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  // Null where it was left out of memory.
  const TrieIndex* trie() const { return trie_.get(); }

  // The same store with one slice more of its filter, read from flash, or with the first `slices`
  // (<= filter_slices()) only. There is a filter_file().
  Result<std::shared_ptr<const SortedStore>> WithSlice() const;
  std::shared_ptr<const SortedStore> WithFirstSlices(unsigned slices) const;
  // Null where there is none, or it is damaged or another store's, which filter_damage() then
  // tells.
  const RibbonFile* filter_file() const { return filter_file_.get(); }
  const Status* filter_damage() const { return filter_damage_.get(); }
  unsigned filter_slices() const { return filter_ ? filter_->slices() : 0; }
  uint64_t filter_bytes() const { return filter_ ? filter_->memory_bytes() : 0; }  // in memory
  // False: the store has no key of this hash, as far as is known from memory.
  bool MayContain(uint64_t hash) const { return !filter_ || filter_->MayContain(hash); }
  void Prefetch(uint64_t hash) const {
    if (filter_) filter_->Prefetch(hash);
  }

  // What the trie takes when it is in memory, about.
  uint64_t trie_bytes() const { return file_->info().payload_bytes; }
  unsigned partition_bits() const { return partition_bits_; }
  uint64_t entries() const { return file_->info().entries; }
  // With the filter.
  uint64_t flash_bytes() const { return file_->size() + (filter_file_ ? filter_file_->size() : 0); }
  const SlotLayout& layout() const { return file_->layout(); }

  // The page where a key must be if it is there. With a trie.
  uint32_t PageOf(const OrderKey& key) const { return trie_->Lookup(TrieKeyOf(key)); }

  StoreCounters& counters() const { return *counters_; }
  IndexComponentStats Stats() const;

 private:
  SortedStore(std::shared_ptr<const FrozenFile> file, unsigned partition_bits)
      : file_(std::move(file)),
        partition_bits_(partition_bits),
        counters_(std::make_shared<StoreCounters>()) {}
  SortedStore(const SortedStore&) = default;  // as the same store with more or less in memory
  void OpenFilter(Env& env, const std::string& directory);
  template <typename Change>
  std::shared_ptr<const SortedStore> Changed(const Change& change) const;

  // Constant after construction; shared with the same store with more or less in memory.
  std::shared_ptr<const FrozenFile> file_;
  unsigned partition_bits_;
  std::shared_ptr<const TrieIndex> trie_;
  std::shared_ptr<const RibbonFile> filter_file_;
  std::shared_ptr<const Status> filter_damage_;
  std::optional<RibbonFilter> filter_;  // nothing where there is no slice
  std::shared_ptr<StoreCounters> counters_;
};

// Finds a key in a SortedStore whose trie is not in memory (SILT, section 4, "Binary search on
// SortedStore"). Keys begin with a hash, so the place of a key is guessed from its hash and those
// of the keys around the last guess: that takes two to three reads where halving takes log2(pages).
// Where guesses do not help, as in a store of hashes that somebody made, every other step halves.
//
// Pages are not verified here. A page that is not in order is passed over, and one counts as the
// place of a key only if two keys on either side say so: a damaged entry takes no others along.
//
// Belongs to one thread.
class SortedSearch {
 public:
  SortedSearch() = default;
  SortedSearch(const SortedStore& store, uint64_t hash_secret, const OrderKey& key);

  // The page to read next; nothing when the key is not there.
  std::optional<uint32_t> NextPage() const;
  // What was read of it. True: the key is in this page.
  bool Take(uint32_t page, ConstPageBytes bytes);

 private:
  void Narrow(uint32_t page, bool before, uint64_t first_hash, uint64_t last_hash);
  void StepAside(uint32_t page);

  uint64_t entries_ = 0;
  SlotLayout layout_;
  uint64_t hash_secret_ = 0;
  OrderKey key_;
  // The key is in pages [first_, end_), whose keys have hashes between these.
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  uint64_t first_hash_ = 0;
  uint64_t last_hash_ = 0;
  std::optional<uint32_t> next_;   // to be read because the one before said nothing
  std::optional<uint32_t> aside_;  // the first of those
  unsigned steps_ = 0;
};

// Reads a SortedStore from front to back, in order. Entries of damaged pages are left out.
class SortedCursor {
 public:
  // `store` may be null: nothing.
  SortedCursor(const SortedStore* store, uint64_t hash_secret);

  struct Item {
    OrderKey key;
    SlotEntry entry;  // until the next Next()
  };
  // What Next() moves to; nothing at the end.
  const std::optional<Item>& item() const { return item_; }
  Status Next();
  uint64_t damaged_pages() const { return damaged_pages_; }

 private:
  const uint64_t hash_secret_;
  std::optional<FrozenFileScan> scan_;
  std::optional<FrozenFileScan::Page> page_;
  uint64_t left_ = 0;  // slots not seen yet
  SlotLayout layout_;
  size_t slot_ = 0;  // of the page
  std::optional<Item> item_;
  uint64_t damaged_pages_ = 0;
};

}  // namespace siltfs
