// A SortedStore (SILT, section 3.3): a partition's entries, sorted, and an index that maps a key to
// its page of 4 KiB (page_index.h): page boundaries, or the paper's entropy-coded trie with "sparse
// indexing" (the slots of a page share a leaf). Immutable; a merge writes its successor.
//
// Entries are sorted by the hash of their name (OrderKey), so a lookup reads only one page,
// whatever names the store holds. The index can be left out of memory; a lookup then searches
// (SortedSearch). An index leads to a page even for an absent key; if memory allows, a filter
// beside it rules out most absent keys (ribbon_filter.h).
//
// Thread-safety: const, so any thread may call. Memory: the index, and the filter's slices that
// were loaded. Durability: frozen_file.h. Format: docs/format.md, "SILT SortedStore".
#pragma once

#include <memory>
#include <optional>

#include "index/flash/binned_pages.h"
#include "index/flash/frozen_file.h"
#include "index/flash/store_counters.h"
#include "index/silt/page_index.h"
#include "index/silt/ribbon_file.h"
#include "index/silt/trie_builder.h"

namespace siltfs {

class SortedStoreWriter {
 public:
  struct Shape {
    unsigned partition_bits = 0;
    // Index and filter are sized for this number; more or fewer entries may be appended.
    uint64_t expected_entries = 0;
    SlotLayout layout = kChunkSlots;
    PageIndexKind page_index = PageIndexKind::kBounds;  // named slots have a trie in any case
    bool filter = true;
  };
  static Result<std::unique_ptr<SortedStoreWriter>> Create(Env& env, const std::string& directory,
                                                           const StoreFileId& id,
                                                           const Shape& shape, Throttle& throttle);
  // Appends an entry. Keys must rise; tombstones are not allowed. Of several entries with the same
  // TrieKeyOf, only the first is kept.
  Status Append(const OrderKey& key, const SlotEntry& entry);
  // Ends the files and syncs them.
  Status Finish();
  uint64_t entries() const { return entries_; }
  uint64_t bytes_written() const { return file_->bytes_written(); }

 private:
  SortedStoreWriter(const Shape& shape, std::unique_ptr<FrozenFileWriter> file,
                    std::unique_ptr<RibbonFileWriter> filter);
  Result<PageIndex> FinishIndex();

  std::unique_ptr<FrozenFileWriter> file_;
  std::unique_ptr<RibbonFileWriter> filter_;  // null: the store has no filter
  uint64_t entries_ = 0;
  ChunkName last_;  // the trie key of the last entry

  // One of the two builders.
  std::optional<TrieBuilder> trie_;
  std::optional<BinnedPages> binned_;
};

class SortedStore {
 public:
  // Open also reads the index from flash; OpenWithoutIndex leaves it out of memory. Both may return
  // kCorruption, kNotFound or kIoError. They do not load the filter's slices, and damage of the
  // filter's file is no error.
  static Result<std::shared_ptr<const SortedStore>> Open(Env& env, const std::string& directory,
                                                         const StoreFileId& id,
                                                         unsigned partition_bits,
                                                         const SlotLayout& layout = kChunkSlots);
  static Result<std::shared_ptr<const SortedStore>> OpenWithoutIndex(
      Env& env, const std::string& directory, const StoreFileId& id, unsigned partition_bits,
      const SlotLayout& layout = kChunkSlots);

  // Copies of this store: WithIndex reads the index from flash, WithoutIndex has none in memory.
  Result<std::shared_ptr<const SortedStore>> WithIndex() const;
  std::shared_ptr<const SortedStore> WithoutIndex() const;
  Result<PageIndex> ReadIndex() const;

  const StoreFileId& file_id() const { return file_->info().file; }
  const FrozenFile& file() const { return *file_; }
  // The index; null if it was left out of memory.
  const PageIndex* index() const { return index_.get(); }
  PageIndexKind index_kind() const { return file_->info().page_index; }

  // Copies of this store: WithSlice reads one more slice of the filter from flash, WithFirstSlices
  // has only the first `slices` (<= filter_slices()). Both require filter_file().
  Result<std::shared_ptr<const SortedStore>> WithSlice() const;
  std::shared_ptr<const SortedStore> WithFirstSlices(unsigned slices) const;
  // The filter's file. Null if the store was written without one. Null, too, if it is missing, if
  // it is damaged, or if it belongs to another store; filter_damage() then gives the reason. Both
  // are null if the file could not be read.
  const RibbonFile* filter_file() const { return filter_file_.get(); }
  const Status* filter_damage() const { return filter_damage_.get(); }
  unsigned filter_slices() const { return filter_ ? filter_->slices() : 0; }
  uint64_t filter_bytes() const { return filter_ ? filter_->memory_bytes() : 0; }  // in memory
  // Returns false only if the store has no key of this hash. Needs no read.
  bool MayContain(uint64_t hash) const { return !filter_ || filter_->MayContain(hash); }
  void Prefetch(uint64_t hash) const {
    if (filter_) filter_->Prefetch(hash);
  }

  // Approximate memory of the index when loaded.
  uint64_t index_bytes() const { return file_->info().payload_bytes; }
  unsigned partition_bits() const { return partition_bits_; }
  uint64_t entries() const { return file_->info().entries; }
  // Including the filter.
  uint64_t flash_bytes() const { return file_->size() + (filter_file_ ? filter_file_->size() : 0); }
  const SlotLayout& layout() const { return file_->layout(); }

  StoreCounters& counters() const { return *counters_; }
  IndexComponentStats Stats() const;

 private:
  SortedStore(std::shared_ptr<const FrozenFile> file, unsigned partition_bits)
      : file_(std::move(file)),
        partition_bits_(partition_bits),
        counters_(std::make_shared<StoreCounters>()) {}
  SortedStore(const SortedStore&) = default;  // the same store with more or less in memory
  void OpenFilter(Env& env, const std::string& directory);
  template <typename Change>
  std::shared_ptr<const SortedStore> Changed(const Change& change) const;

  // Constant after construction; shared by the copies with more or less in memory.
  std::shared_ptr<const FrozenFile> file_;
  unsigned partition_bits_;
  std::shared_ptr<const PageIndex> index_;
  std::shared_ptr<const RibbonFile> filter_file_;
  std::shared_ptr<const Status> filter_damage_;
  std::optional<RibbonFilter> filter_;  // empty without a slice
  std::shared_ptr<StoreCounters> counters_;
};

// Finds a key in a SortedStore without its index in memory (SILT, section 4, "Binary search on
// SortedStore"). Keys begin with a hash. So each step guesses the key's page by interpolation: from
// the key's hash, and from the least and the greatest hash that the remaining pages can have. That
// takes two to three reads; bisection takes log2(pages). After four steps every other step bisects,
// because guesses do not help with crafted hashes.
//
// The checksums of pages with named slots are not verified here. A page with keys out of order is
// skipped, as the caller skips a page that is known to be damaged (TakeDamaged). In a page
// with at least four entries, two keys must agree on the direction in which the search continues.
// So a single damaged entry does not hide other entries.
//
// Belongs to one thread.
class SortedSearch {
 public:
  SortedSearch() = default;
  SortedSearch(const SortedStore& store, const NameHash& name_hash, const OrderKey& key);

  // Returns the page to read next, or nothing if the key is absent.
  std::optional<uint32_t> NextPage() const;
  // Passes in the page that was read. Returns true if the key is in this page.
  bool Take(uint32_t page, ConstPageBytes bytes);
  // Called instead of Take for a page that could be read but is damaged.
  void TakeDamaged(uint32_t page) { StepAside(page); }

 private:
  void Narrow(uint32_t page, bool before, uint64_t first_hash, uint64_t last_hash);
  void StepAside(uint32_t page);

  SlotLayout layout_;
  NameHash name_hash_;
  OrderKey key_;
  // If the key is present, it is in pages [first_, end_). The hashes of all keys in these pages are
  // from first_hash_ to last_hash_.
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  uint64_t first_hash_ = 0;
  uint64_t last_hash_ = 0;
  std::optional<uint32_t> next_;   // to be read because the previous page was implausible
  std::optional<uint32_t> aside_;  // the first implausible page
  unsigned steps_ = 0;
};

// Reads a sorted file, of a SortedStore or a sorted run, from front to back. Entries of damaged
// pages are left out. Memory: that of a FrozenFileScan.
class SortedCursor {
 public:
  // `file` must have entries in order, and must outlive the cursor. If it is null, there are no
  // items. The cursor reads into `pages` (FrozenFileScan), or into a buffer of its own if there are
  // none.
  SortedCursor(const FrozenFile* file, const NameHash& name_hash, MutableByteView pages = {});

  struct Item {
    OrderKey key;
    SlotEntry entry;  // valid until the next Next()
  };
  // The current item; nothing at the end.
  const std::optional<Item>& item() const { return item_; }
  Status Next();
  uint64_t damaged_pages() const { return damaged_pages_; }

 private:
  const NameHash name_hash_;
  std::optional<FrozenFileScan> scan_;
  std::optional<FrozenFileScan::Page> page_;
  SlotLayout layout_;
  size_t slot_ = 0;  // of the page
  std::optional<Item> item_;
  uint64_t damaged_pages_ = 0;
};

}  // namespace siltfs
