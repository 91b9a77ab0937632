// The write buffer of a BloomStore instance: a page of entries in memory, in the order of their
// puts, and the active filter of these entries (BloomStore, section III.A, "KV Pair Write Buffer"
// and "BF Buffer").
//
// Thread-safety: const calls may run concurrently. Memory: a page and a filter, from the first
// insertion until Clear.
#pragma once

#include <optional>
#include <vector>

#include "index/flash/bloom_filter.h"
#include "index/flash/flash_page.h"
#include "store/base/aligned_buffer.h"

namespace siltfs {

class PageBuffer {
 public:
  PageBuffer(const RecordLayout& layout, const BloomShape& filter)
      : layout_(layout), filter_shape_(filter) {}

  size_t size() const { return count_ + overflow_.size(); }
  uint64_t memory_bytes() const;
  // The memory of a buffer that is not empty.
  static uint64_t MemoryFor(const BloomShape& filter) { return kPageSize + filter.bytes(); }

  std::optional<FlashEntry> Find(uint64_t hash) const;
  // Inserts the entry, or replaces the location of its hash. Returns false if the page is full;
  // then nothing has changed.
  bool Insert(const FlashEntry& entry);
  // Inserts an entry even if the page is full.
  void InsertAnyway(const FlashEntry& entry);
  // Removes all entries and frees the memory.
  void Clear();

  // All entries, each hash once.
  std::vector<FlashEntry> entries() const;

 private:
  PageBytes Page() { return PageBytes(page_.data(), kPageSize); }
  ConstPageBytes Page() const { return ConstPageBytes(page_.view().data(), kPageSize); }
  std::optional<size_t> PlaceOf(uint64_t hash) const;

  const RecordLayout layout_;
  const BloomShape filter_shape_;
  AlignedBuffer page_;                 // empty: there are no entries
  std::optional<BloomFilter> active_;  // of the page's entries
  size_t count_ = 0;
  std::vector<FlashEntry> overflow_;
};

}  // namespace siltfs
