// Merges the entries of several sorted runs (run_store.h): one cursor for each run, and the least
// key of all cursors comes next. Of equal keys, the one of the newest run comes first.
//
// Thread-safety: none; the files are only read, and must outlive the merge. Memory: the cursors'
// buffers, in one block, because many small aligned buffers would leave holes in the heap.
#pragma once

#include <deque>
#include <vector>

#include "index/silt/sorted_store.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class RunStoreMerge {
 public:
  explicit RunStoreMerge(const NameHash& name_hash) : name_hash_(name_hash) {}

  // Makes buffers for `runs` cursors, which read `pages_at_once` (> 0) pages at a time. Call once,
  // before Add.
  void Reserve(size_t runs, size_t pages_at_once);
  // Adds a run and reads its first entry. A run of a lower age is newer.
  Status Add(const FrozenFile& file, uint32_t age);

  // The next entry; null at the end. Valid until the next Next().
  const SortedCursor::Item* item() const {
    return heap_.empty() ? nullptr : &*heap_.front().source->cursor.item();
  }
  uint32_t age() const { return heap_.front().age; }  // of the run of item()
  Status Next();

  // Damaged pages, which were left out, and one for each run with entries out of order.
  uint64_t damaged_pages() const;
  uint64_t memory_bytes() const { return sources_.size() * buffer_bytes_; }

 private:
  struct Source {
    Source(const FrozenFile& file, const NameHash& name_hash, MutableByteView pages)
        : cursor(&file, name_hash, pages) {}
    SortedCursor cursor;
    uint64_t out_of_order = 0;  // entries
  };
  struct Head {
    OrderKey key;
    uint32_t age = 0;
    Source* source = nullptr;
    // For a heap whose front is the least.
    bool operator<(const Head& other) const {
      return key != other.key ? other.key < key : other.age < age;
    }
  };
  // Puts the source's entry into the heap, if it has one.
  void Push(uint32_t age, Source& source);

  const NameHash name_hash_;
  std::deque<Source> sources_;
  std::vector<Head> heap_;
  size_t buffer_bytes_ = 0;  // of each cursor
  size_t first_buffer_ = 0;  // its place in buffers_
  std::vector<uint8_t, PageAllocator<uint8_t, 1>> buffers_;
};

}  // namespace siltfs
