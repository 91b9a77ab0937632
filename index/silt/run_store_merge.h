// Merges the entries of several sorted runs (run_store.h): one cursor for each run, and the least
// key of all cursors comes next. Of equal keys, the one of the newest run comes first.
//
// Thread-safety: none; the files are only read, and must outlive the merge. Memory: the cursors'
// buffers, `pages_at_once` pages for each run.
#pragma once

#include <deque>
#include <vector>

#include "index/silt/sorted_store.h"

namespace siltfs {

class RunStoreMerge {
 public:
  explicit RunStoreMerge(const NameHash& name_hash) : name_hash_(name_hash) {}

  // Adds a run and reads its first entry. A run of a lower age is newer.
  Status Add(const FrozenFile& file, uint32_t age, uint32_t pages_at_once);

  // The next entry; null at the end. Valid until the next Next().
  const SortedCursor::Item* item() const {
    return heap_.empty() ? nullptr : &*heap_.front().source->cursor.item();
  }
  uint32_t age() const { return heap_.front().age; }  // of the run of item()
  Status Next();

  // Damaged pages, which were left out, and one for each run with entries out of order.
  uint64_t damaged_pages() const;
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Source {
    Source(const FrozenFile& file, const NameHash& name_hash, uint32_t pages_at_once)
        : cursor(&file, name_hash, pages_at_once) {}
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
  uint64_t memory_bytes_ = 0;
};

}  // namespace siltfs
