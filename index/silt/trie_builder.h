// Builds a TrieIndex from keys in their order.
//
// Where keys branch is known from how many leading bits each shares with the next. So only those
// numbers are kept, a byte a key (with exact ordering the key, too), and only of the bucket that is
// being filled; a full one is written at once.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "index/silt/bit_stream.h"
#include "index/silt/trie_index.h"
#include "index/silt/trie_key.h"

namespace siltfs {

class TrieBuilder {
 public:
  // `expected` is the number of keys to come, as far as is known: it sizes the buckets. Options as
  // TrieOptions has them, block_entries > 0.
  TrieBuilder(const TrieOptions& options, uint64_t expected);

  // The next key, greater than the last. Not so, or not of the same leading bits, or the 2^32-th:
  // Finish fails.
  void Add(const ChunkName& key);

  uint64_t added() const { return added_; }

  // The index of all keys added; kInvalidArgument if one of them was wrong. Once.
  Result<TrieIndex> Finish();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Of two neighbours in the bucket, the node at which they part. Its subtrees' nodes, or kNone.
  struct Parting {
    uint32_t left;
    uint32_t right;
  };
  struct Subtree {
    uint32_t node;
    uint32_t first;  // key in the bucket
    uint32_t leaves;
    uint32_t depth;
  };

  void EndBucketsBefore(uint64_t bucket);
  void WriteTrie();
  uint32_t LinkPartings();
  bool NeedsNode(uint32_t first, uint32_t leaves) const;
  void WriteOneSided(const Subtree& subtree, unsigned until);

  // Constant after construction.
  TrieIndex index_;  // but for what Finish fills in
  uint32_t buckets_;

  BitWriter tries_;
  uint64_t added_ = 0;
  uint64_t first_word_ = 0;  // of the first key, for its leading bits
  bool wrong_ = false;
  uint32_t bucket_ = 0;       // being filled
  uint32_t bucket_rank_ = 0;  // of its first key
  TrieKey last_{};
  std::vector<uint8_t> shared_;  // bits that a key of the bucket shares with the next
  std::vector<TrieKey> keys_;    // of the bucket; with exact ordering only
  std::vector<Parting> partings_;
  std::vector<uint32_t> open_;  // nodes on the path to the last
};

}  // namespace siltfs
