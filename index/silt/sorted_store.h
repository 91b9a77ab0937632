// A SortedStore (SILT, section 3.3): a partition's entries sorted, and an entropy-coded trie that
// says in which page of 4 KiB a key lies ("sparse indexing": 128 slots share a leaf), in about 0.3
// bits a key. Immutable; a merge writes its successor.
//
// Entries are sorted by the hash of their name (OrderKey), so one page is read whatever names
// there are.
//
// Thread-safety: const, so any. Memory: the trie. Durability: frozen_file.h. Format:
// docs/format.md, "SILT SortedStore".
#pragma once

#include <memory>
#include <optional>

#include "index/silt/frozen_file.h"
#include "index/silt/store_counters.h"
#include "index/silt/trie_builder.h"
#include "index/silt/trie_index.h"

namespace siltfs {

class SortedStoreWriter {
 public:
  // `expected_entries` shapes the trie; more or fewer may come.
  static Result<std::unique_ptr<SortedStoreWriter>> Create(Env& env, const std::string& directory,
                                                           const StoreFileId& id,
                                                           unsigned partition_bits,
                                                           uint64_t expected_entries,
                                                           Throttle& throttle);
  // In rising order; no tombstones. Of several entries with one TrieKeyOf the first stays.
  Status Append(const OrderKey& key, const IndexEntry& entry);
  // Ends the file and syncs it.
  Status Finish();
  uint64_t entries() const { return file_->slots(); }
  uint64_t bytes_written() const { return file_->bytes_written(); }

 private:
  SortedStoreWriter(std::unique_ptr<FrozenFileWriter> file, TrieBuilder trie)
      : file_(std::move(file)), trie_(std::move(trie)) {}

  std::unique_ptr<FrozenFileWriter> file_;
  TrieBuilder trie_;
  ChunkName last_;  // as the trie has it
};

class SortedStore {
 public:
  // Reads the trie from flash. kCorruption, kNotFound, kIoError.
  static Result<std::shared_ptr<const SortedStore>> Open(Env& env, const std::string& directory,
                                                         const StoreFileId& id,
                                                         unsigned partition_bits);

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  const TrieIndex& trie() const { return trie_; }
  uint64_t entries() const { return file_->info().entries; }

  // The page where a key must be if it is there.
  uint32_t PageOf(const OrderKey& key) const { return trie_.Lookup(TrieKeyOf(key)); }
  // What a page holds of a name.
  static std::optional<IndexEntry> EntryInPage(const ChunkName& name, ConstPageBytes bytes);

  StoreCounters& counters() const { return counters_; }
  IndexComponentStats Stats() const;

 private:
  SortedStore(std::shared_ptr<const FrozenFile> file, TrieIndex trie)
      : file_(std::move(file)), trie_(std::move(trie)) {}

  const std::shared_ptr<const FrozenFile> file_;
  const TrieIndex trie_;
  mutable StoreCounters counters_;
};

// Reads a SortedStore from front to back, in order. Entries of damaged pages are left out.
class SortedCursor {
 public:
  // `store` may be null: nothing.
  SortedCursor(const SortedStore* store, uint64_t hash_secret);

  struct Item {
    OrderKey key;
    IndexEntry entry;
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
  size_t slot_ = kSlotsPerPage;
  std::optional<Item> item_;
  uint64_t damaged_pages_ = 0;
};

}  // namespace siltfs
