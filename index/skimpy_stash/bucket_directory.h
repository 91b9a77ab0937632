// The directory of a SkimpyStash partition in memory: for each bucket the pointer to its chain (4
// bytes) and, in the enhanced design, the number of its entries (1 byte) and a Bloom filter (k
// bytes)
// ("SkimpyStash", section 4.5, figure 6). Counts and filters may be absent; then every bucket may
// have every hash.
//
// The directory is the result of Apply for each record of the log, in order. A record that begins a
// chain (pointer 0) empties its bucket first. So a chain that is written again as a whole replaces
// the old one, and Recover (chain_sweep.h) gets the directory from the log alone.
//
// Thread-safety: const calls may run concurrently. Units: bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "index/skimpy_stash/chain_record.h"
#include "store/base/bytes.h"

namespace siltfs {

class BucketDirectory {
 public:
  // Without heads and filters.
  explicit BucketDirectory(const SkimpyStashShape& shape) : shape_(shape) {}
  BucketDirectory(const BucketDirectory&) = default;
  BucketDirectory(BucketDirectory&&) = default;
  BucketDirectory& operator=(BucketDirectory&&) = default;

  bool has_heads() const { return !heads_.empty(); }
  bool has_filters() const { return !filters_.empty(); }
  void MakeHeads();
  // In the enhanced design only.
  void MakeFilters();
  void DropFilters();
  // Takes counts and filters from a directory of the same records, which loses them.
  void TakeFilters(BucketDirectory& other);

  // The pointer to the bucket's newest record; 0: it has none.
  uint32_t head(uint32_t bucket) const { return heads_.empty() ? 0 : heads_[bucket]; }
  // At most 255. Requires filters.
  uint8_t count(uint32_t bucket) const { return counts_[bucket]; }
  // False only if the bucket has no record of the hash.
  bool MayHave(uint32_t bucket, uint64_t hash) const;
  // Whether the next record of this hash belongs into its second bucket. `more` are further entries
  // of the two buckets.
  bool ChoosesSecond(uint64_t hash, const std::array<uint32_t, 2>& more) const;

  // Enters a record in page `page` of the log. Returns whether it makes an older record of its hash
  // obsolete, as far as the filters tell; without them, only tombstones count.
  bool Apply(const ChainRecord& record, uint32_t page);
  // Entries in all buckets. Without filters, each record of an entry counts.
  uint64_t entries() const { return entries_; }
  void SetEntries(uint64_t entries) { entries_ = entries; }

  uint64_t memory_bytes() const { return head_bytes() + filter_bytes(); }
  uint64_t head_bytes() const { return heads_.size() * sizeof(uint32_t); }
  uint64_t filter_bytes() const { return counts_.size() + filters_.size(); }
  // The bytes of Encode, with or without filters.
  static uint64_t EncodedSize(const SkimpyStashShape& shape, bool with_filters);
  Bytes Encode() const;
  // Reads the bytes of Encode; makes what the directory lacks, and skips filters unless
  // `with_filters`. Returns false if a pointer leads to a page that is not below `pages`; the
  // directory is unusable then.
  bool Decode(ByteView bytes, bool with_filters, uint32_t pages);

 private:
  std::span<uint8_t> Filter(uint32_t bucket) {
    return std::span(filters_).subspan(size_t{bucket} * shape_.entries_per_bucket,
                                       shape_.entries_per_bucket);
  }

  SkimpyStashShape shape_;
  std::vector<uint32_t> heads_;  // by bucket
  std::vector<uint8_t> counts_;
  std::vector<uint8_t> filters_;
  uint64_t entries_ = 0;
};

}  // namespace siltfs
