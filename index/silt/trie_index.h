// The memory side of a SortedStore (SILT, section 3.3): from a key to its place in a file of
// entries in key order, by an entropy-coded trie over the keys' shortest unique prefixes, in 2.5
// bits a key. It keeps no keys: whether the key is there at all, the entry read tells.
//
// The keys are dealt to buckets by the number their leading bits make, each with a trie of its own,
// so that a lookup decodes half a bucket at most. A trie is written as in the paper: for each node
// the number of leaves on its left (trie_codec.h), then its left subtree, then its right one.
//
// Sparse, a block of block_entries entries (what one read of flash brings) is told, not an entry: a
// subtree all of whose keys lie in one block is not written. Nodes carry ranks all the same, so
// every key that is there comes to exactly its own block.
//
// The file is in key order in every mode; weak ordering only lets absent keys go anywhere, so two
// files merge as plain sorted runs.
//
// Keys that are not uniform cost more bits, and a bucket that gets all of them takes time
// proportional to their number to look through, but answers stay right.
//
// When not to use it: where an absent key must come to its neighbours (only TrieOrdering::kExact
// with block_entries = 1 does that).
#pragma once

#include <cstdint>

#include "index/silt/trie_buckets.h"
#include "index/silt/trie_codec.h"
#include "store/base/bytes.h"
#include "store/base/chunk_name.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs {

struct TrieOptions {
  static constexpr unsigned kMaxSkipBits = 32;

  TrieOrdering ordering = TrieOrdering::kWeak;
  uint32_t block_entries = 1;   // entries a block; 1: the index tells the key's rank
  unsigned skip_bits = 0;       // leading bits that all keys share; <= kMaxSkipBits
  uint32_t bucket_entries = 0;  // keys a bucket aimed at; 0: a good number

  bool operator==(const TrieOptions&) const = default;
};

// Thread-safety: immutable, so safe to share between threads.
class TrieIndex {
 public:
  // A key's block: rank / block_entries. Of an absent key some block, < blocks() unless there is
  // none (then 0).
  uint32_t Lookup(const ChunkName& key) const {
    return options_.block_entries == 1 ? Find<true>(key) : Find<false>(key);
  }

  uint32_t entries() const { return entries_; }
  uint32_t blocks() const;
  const TrieOptions& options() const { return options_; }
  size_t memory_bytes() const;

  // The index as bytes, without a checksum, which the file's owner adds.
  void Encode(Encoder& out) const;
  // What Encode wrote; kCorruption if the bytes are anything else. Reads all of the tries, about as
  // long as building them, and what it accepts is safe to look up in, whoever wrote it.
  static Result<TrieIndex> Decode(ByteView bytes);

 private:
  friend class TrieBuilder;
  // Bytes behind the tries' last that a reader may touch.
  static constexpr size_t kPadding = 32;

  TrieIndex() = default;
  template <bool kEveryKey>
  uint32_t Find(const ChunkName& key) const;
  Status Check() const;
  Status CheckBucket(TrieBuckets::Start start, TrieBuckets::Start end) const;
  bool InOneBlock(uint32_t rank, uint32_t leaves) const {
    return rank / options_.block_entries == (rank + leaves - 1) / options_.block_entries;
  }

  // Constant after construction.
  TrieOptions options_;
  const TrieCodec* codec_ = nullptr;
  uint32_t entries_ = 0;
  uint64_t bits_ = 0;  // of all tries
  TrieBuckets buckets_;
  Bytes tries_;  // with kPadding
};

}  // namespace siltfs
