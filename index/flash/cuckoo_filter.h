// The filter of a file that has the entries of a cuckoo table in the table's order (a HashStore of
// SILT, section 3.2): the tags of the table, in memory. The entry of place i lies in slot i of the
// file, so the filter keeps only the tags. They take 2 bytes per place, which is 16.8
// bits per entry if 95 % of the places are in use.
//
// The filter also has the table's stash, whose entries lie in the slots after the places.
//
// Thread-safety: a filter never changes, so any thread may call. Memory: 2 bytes per place.
#pragma once

#include <vector>

#include "index/flash/cuckoo_table.h"
#include "store/base/bytes.h"
#include "store/base/result.h"
#include "store/env/page_allocator.h"

namespace siltfs {

class CuckooFilter {
 public:
  // The tags and the stash of `table`.
  explicit CuckooFilter(const CuckooTable& table);

  unsigned bucket_bits() const { return bucket_bits_; }
  size_t places() const { return tags_.size(); }
  // Slots of the file: the places and the stash.
  size_t slots() const { return tags_.size() + stash_.size(); }
  bool Occupied(size_t slot) const;
  size_t memory_bytes() const;

  // Returns the slots that may hold a key of this hash. Their order has no meaning, because a key
  // is stored only once.
  CuckooTable::Candidates Find(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;
  // Whether a lookup of this hash has this slot among its candidates.
  bool Finds(uint64_t hash, uint32_t slot) const;

  // Returns the filter as bytes for flash. Format: docs/format.md, "SILT HashStore".
  std::string Encode() const;
  // kCorruption if the bytes are not as Encode writes them.
  static Result<CuckooFilter> Decode(unsigned bucket_bits, ByteView bytes);

  friend bool operator==(const CuckooFilter&, const CuckooFilter&) = default;

 private:
  CuckooFilter() = default;

  unsigned bucket_bits_ = 0;
  PageVector<uint16_t> tags_;
  std::vector<CuckooPlace> stash_;
};

}  // namespace siltfs
