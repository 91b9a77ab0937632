// The part of a SortedStore that is in memory (SILT, section 3.3): it maps a key to its place in a
// file of sorted entries. It is an entropy-coded trie over the keys' shortest unique prefixes, and
// takes 2.5 bits per key. It stores no keys: the caller must read the entry to learn whether the
// key is present.
//
// Keys are distributed to buckets by their leading bits. Each bucket has its own trie, so that a
// lookup decodes at most one bucket, and half of it on average. A trie is written as in the paper:
// for each node the number of leaves on its left (trie_codec.h), then its left subtree, then its
// right one.
//
// A sparse index returns a block of block_entries entries (one read of flash), not an entry.
// Subtrees with all keys in one block are not written. The other nodes still count all their
// leaves, so every present key is led to exactly its own block.
//
// The file is in key order in every mode, so two files merge as plain sorted runs; weak ordering
// only means that absent keys are led to arbitrary places.
//
// Keys that are not uniform cost more bits. If one bucket has all of them, a lookup takes time
// proportional to their number. Answers stay correct.
//
// Do not use it if an absent key must be led to its neighbors, except with TrieOrdering::kExact and
// block_entries = 1.
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
  uint32_t block_entries = 1;   // entries per block; 1: the index returns the key's rank
  unsigned skip_bits = 0;       // leading bits that all keys share; <= kMaxSkipBits
  uint32_t bucket_entries = 0;  // intended keys per bucket; 0: TrieBuilder chooses the number

  bool operator==(const TrieOptions&) const = default;
};

// Thread-safety: immutable, so safe to share between threads.
class TrieIndex {
 public:
  // Returns a key's block: rank / block_entries. For an absent key it returns any block below
  // blocks(), or 0 if there are no blocks.
  uint32_t Lookup(const ChunkName& key) const {
    return options_.block_entries == 1 ? Find<true>(key) : Find<false>(key);
  }

  uint32_t entries() const { return entries_; }
  uint32_t blocks() const;
  const TrieOptions& options() const { return options_; }
  size_t memory_bytes() const;

  // Encodes the index without a checksum. FrozenFileWriter, which writes these bytes to a file,
  // adds a checksum.
  void Encode(Encoder& out) const;
  // Reads the output of Encode; kCorruption for other bytes. Reads all tries, which takes about as
  // long as building them. An accepted index is safe to look up in, even a crafted one.
  static Result<TrieIndex> Decode(ByteView bytes);

 private:
  friend class TrieBuilder;
  // Bytes behind the last trie that a reader may touch.
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
