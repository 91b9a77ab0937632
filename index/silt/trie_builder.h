// Builds a TrieIndex from sorted keys.
//
// The number of leading bits that neighboring keys share determines where they branch. So only
// these numbers are kept, one byte per key (with exact ordering the keys, too), and only for the
// bucket being filled; a full bucket is written at once.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "index/flash/bit_stream.h"
#include "index/silt/trie_index.h"
#include "index/silt/trie_key.h"

namespace siltfs {

class TrieBuilder {
 public:
  // `expected` is the estimated number of keys; it sizes the buckets. Requires block_entries > 0.
  TrieBuilder(const TrieOptions& options, uint64_t expected);

  // Adds the next key, which must be greater than the last. Finish fails if the key is not greater,
  // if its leading bits differ from those of the other keys, or if it is the 2^32-th key.
  void Add(const ChunkName& key);

  uint64_t added() const { return added_; }

  // The index of all keys added; kInvalidArgument if one of them was wrong. Call once.
  Result<TrieIndex> Finish();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The node at which two neighboring keys of the bucket branch. Its fields are the nodes of its
  // subtrees, or kNone.
  struct Parting {
    uint32_t left;
    uint32_t right;
  };
  struct Subtree {
    uint32_t node;
    uint32_t first;  // its first key in the bucket
    uint32_t leaves;
    uint32_t depth;
  };

  void EndBucketsBefore(uint64_t bucket);
  void WriteTrie();
  uint32_t LinkPartings();
  bool NeedsNode(uint32_t first, uint32_t leaves) const;
  void WriteOneSided(const Subtree& subtree, unsigned until);

  // Constant after construction.
  TrieIndex index_;  // except for the fields that Finish sets
  uint32_t buckets_;

  BitWriter tries_;
  uint64_t added_ = 0;
  uint64_t first_word_ = 0;  // of the first key, for its leading bits
  bool wrong_ = false;
  uint32_t bucket_ = 0;       // being filled
  uint32_t bucket_rank_ = 0;  // of its first key
  TrieKey last_{};
  std::vector<uint8_t> shared_;  // [i]: leading bits that keys i and i + 1 of the bucket share
  std::vector<TrieKey> keys_;    // of the bucket; only with exact ordering
  std::vector<Parting> partings_;
  std::vector<uint32_t> open_;  // nodes on the path to the last key
};

}  // namespace siltfs
