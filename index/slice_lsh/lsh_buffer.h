// The chunks of a SliceLSH that are not in slicetables yet, in memory: a hash table with chains,
// shared by all tables of the SliceLSH.
//
// Of each super-feature only the newest entries stay, as in slicetables. So no chain has many
// entries of one key, even if all chunks are alike.
//
// Thread-safety: const calls may run concurrently. Memory: at most 8 bytes for each chunk, and 16
// for each chunk and table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/slice_lsh/lsh_entry.h"

namespace siltfs {

class LshBuffer {
 public:
  LshBuffer(unsigned tables, unsigned most_per_feature, uint64_t bytes);

  size_t size() const { return places_.size(); }  // chunks
  bool full() const { return places_.size() >= capacity_; }
  // Entries of the table that stay.
  size_t EntriesOf(unsigned table) const { return entries_[table]; }
  uint64_t memory_bytes() const;

  // Adds a chunk; keys[t] is its key in table t. Requires !full(). Returns how many older entries
  // it has replaced. A chunk that is there with the same keys is not added again.
  unsigned Add(std::span<const uint64_t> keys, const SliceLshPlace& place);

  // Calls visit(place) for the entries of a key in a table, the newest first.
  template <typename Visit>
  void Find(unsigned table, uint64_t key, const Visit& visit) const {
    if (heads_.empty()) return;
    for (uint32_t slot = heads_[HeadOf(table, key)]; slot != kNone; slot = nexts_[slot]) {
      if (Has(slot, table, key)) visit(places_[slot / tables_]);
    }
  }
  // The entries of a table in the order of their keys, and of each key the newest first.
  std::vector<LshEntry> Sorted(unsigned table) const;

  void Clear();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kReplaced = UINT64_MAX;  // instead of the key of an entry

  size_t HeadOf(unsigned table, uint64_t key) const {
    return static_cast<size_t>(key + table * uint64_t{0x9E3779B9}) & (heads_.size() - 1);
  }
  bool Has(uint32_t slot, unsigned table, uint64_t key) const {
    return keys_[slot] == key && slot % tables_ == table;
  }
  bool IsThere(std::span<const uint64_t> keys, const SliceLshPlace& place) const;

  const unsigned tables_;
  const unsigned most_per_feature_;
  const size_t capacity_;
  size_t head_count_ = 1;              // a power of two
  std::vector<SliceLshPlace> places_;  // of chunks
  // By slot: chunk * tables + table.
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> nexts_;  // older ones of the chain
  std::vector<uint32_t> heads_;  // the newest slot of each chain; empty before the first Add
  std::vector<size_t> entries_;  // by table
};

}  // namespace siltfs
